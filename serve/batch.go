package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/proxy/wire"
)

type batchInput struct{ Body batchBody }

// batchBody is a batch whose runs are not checked yet: each is refused by itself.
type batchBody struct {
	Runs []json.RawMessage `json:"runs"`
}

// Schema implements huma.SchemaProvider.
func (batchBody) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"runs"}, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{"runs": {Type: huma.TypeArray, MinItems: new(1), MaxItems: new(maxBatch), Items: &huma.Schema{}}},
	}
}

const maxBatch = 1000

// batchRuns is a batchBody as the document has it.
type batchRuns struct {
	Runs []batchRun `json:"runs" minItems:"1" maxItems:"1000"`
}

// batchRun has the fields of a runRequest once more: huma does not see those of an embedded type that is not exported.
type batchRun struct {
	Thread string     `json:"thread_id,omitempty" maxLength:"256" doc:"A new thread if it is left out."`
	Run    runRequest `json:"run" doc:"As the body of POST /v1/runs. Its mode is background."`
}

type batchOutput struct {
	Body struct {
		Runs []batchResult `json:"runs" doc:"What became of each request, in their order."`
	}
}

type batchResult struct {
	submitted
	Error *Problem `json:"error,omitempty" doc:"Why the request was refused. The ids are empty then, but for that of a thread that was named."`
}

// submitBatch queues many runs. Each is accepted or refused by itself.
func (s *Server) submitBatch(ctx context.Context, in *batchInput) (*batchOutput, error) {
	if p := s.closed(false); p != nil {
		return nil, p
	}
	list := in.Body.Runs
	out := &batchOutput{}
	out.Body.Runs = make([]batchResult, len(list))
	var requests []mailbox.Request
	var places []int
	for i := range list {
		item, p := s.rules.batchRun(list[i], fmt.Sprintf("body.runs[%d]", i))
		out.Body.Runs[i].ThreadID = item.Thread
		if p != nil {
			out.Body.Runs[i].Error = p
			continue
		}
		r, err := s.batched(ctx, &item)
		if err != nil {
			out.Body.Runs[i].Error = s.problemOf(ctx, err, i)
			continue
		}
		requests, places = append(requests, r), append(places, i)
	}
	for n, sub := range s.box().SubmitBatch(ctx, requests) {
		i := places[n]
		if sub.Err != nil {
			out.Body.Runs[i].Error = s.problemOf(ctx, sub.Err, i)
			continue
		}
		out.Body.Runs[i].submitted = submitted{
			RunID: sub.Run, ThreadID: sub.Thread, DispatchID: sub.Dispatch, Status: string(mailbox.RunCreated), Repeated: sub.Repeated,
		}
		s.changes.tell(sub.Thread)
	}
	s.cfg.Logger.InfoContext(ctx, "runs_submitted", "runs", len(list), "caller", callerOf(ctx))
	return out, nil
}

// batchRun reads a run of a batch, of which path is the place. Of one that is refused it has what can be read.
func (r *rules) batchRun(data []byte, path string) (out batchRun, p *Problem) {
	var v any
	err := json.Unmarshal(data, &v)
	wrong := r.wrong(r.run, path, v)
	if again := json.Unmarshal(data, &out); err == nil {
		err = again
	}
	if err == nil {
		err = strict(data, wire.Whole(data), reflect.TypeFor[batchRun](), path)
	}
	if wrong == nil && err != nil {
		wrong = &huma.ErrorDetail{Message: err.Error(), Location: path}
	}
	if wrong != nil {
		return out, r.problem(http.StatusUnprocessableEntity, wrong)
	}
	return out, nil
}

func (s *Server) batched(ctx context.Context, r *batchRun) (mailbox.Request, error) {
	if r.Run.Mode != "" && r.Run.Mode != modeBackground {
		return mailbox.Request{}, problem(http.StatusUnprocessableEntity, "runs of a batch are queued", "leave mode out").about("body.mode")
	}
	return s.request(ctx, &submitInput{Thread: r.Thread, Body: r.Run})
}

// problemOf returns the problem of a request of a batch.
func (s *Server) problemOf(ctx context.Context, err error, i int) *Problem {
	var p *Problem
	if !errors.As(s.failure(ctx, err), &p) {
		return problem(http.StatusInternalServerError, "the request failed", "see the log of the server")
	}
	own := *p
	place := fmt.Sprintf("body.runs[%d]", i)
	if own.Field = strings.TrimPrefix(own.Field, "body"); own.Field != "" {
		place += ".run"
	}
	own.Field = place + own.Field
	return &own
}
