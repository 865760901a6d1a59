package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mortise-dev/mortise/mailbox"
)

type batchInput struct {
	Body struct {
		Runs []batchRun `json:"runs" minItems:"1" maxItems:"1000"`
	}
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
	Error *Problem `json:"error,omitempty" doc:"Why the request was refused."`
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
		r, err := s.batched(ctx, &list[i])
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
