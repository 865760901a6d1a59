package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/thread"
)

type threadInput struct {
	Thread string `path:"thread" maxLength:"256"`
}

type threadView struct {
	ID        string     `json:"id"`
	Tenant    string     `json:"tenant,omitempty"`
	Parent    string     `json:"parent_thread_id,omitempty" doc:"The thread above it."`
	Title     string     `json:"title,omitempty"`
	Metadata  any        `json:"metadata,omitempty" doc:"A JSON object of the clients."`
	Messages  int        `json:"messages" doc:"The length of its log."`
	Queued    int        `json:"queued" doc:"How many requests wait."`
	Executing bool       `json:"executing" doc:"Whether a process executes its run."`
	PausedAt  *time.Time `json:"paused_at,omitempty" doc:"Since when an operator has paused it."`
	OpenRun   *runRef    `json:"open_run,omitempty" doc:"The run that is not done."`
	LatestRun *runRef    `json:"latest_run,omitempty" doc:"The run that was made last."`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

type runRef struct {
	ID     string `json:"id"`
	Agent  string `json:"agent,omitempty"`
	Status string `json:"status"`
	Wait   string `json:"wait,omitempty"`
}

type threadOutput struct{ Body threadView }

func refOf(r mailbox.RunRef) *runRef {
	if r.ID == "" {
		return nil
	}
	return &runRef{ID: r.ID, Agent: r.Agent, Status: string(r.Status), Wait: r.Wait}
}

// head reads a thread, or fails with a [Problem].
func (s *Server) head(ctx context.Context, id string) (mailbox.Thread, error) {
	h, err := s.box().Thread(ctx, id)
	if err != nil {
		return h, s.failure(ctx, err)
	}
	if h.Seq == 0 {
		return h, notFound("thread", id)
	}
	s.outage.Store(false)
	return h, nil
}

func (s *Server) getThread(ctx context.Context, in *threadInput) (*threadOutput, error) {
	h, err := s.head(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	return &threadOutput{Body: viewOf(&h)}, nil
}

func viewOf(h *mailbox.Thread) threadView {
	v := threadView{
		ID: h.ID, Tenant: h.Tenant, Parent: h.Parent, Title: h.Title, Messages: h.Messages, Queued: h.Queued, Executing: h.Claim != nil,
		OpenRun: refOf(h.Open), LatestRun: refOf(h.Latest), CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt,
		PausedAt: maybe(h.PausedAt),
	}
	if h.Metadata != "" {
		v.Metadata = json.RawMessage(h.Metadata)
	}
	return v
}

type describeInput struct {
	Thread string `path:"thread" maxLength:"256"`
	Body   struct {
		Title    change[string]         `json:"title,omitzero" maxLength:"1000" doc:"Null empties it."`
		Metadata change[map[string]any] `json:"metadata,omitzero" doc:"Replaces all of the metadata. Null empties it."`
	}
}

// change is a new value of a field, of which null is the empty one. It has none where the request has no such field.
type change[T any] struct{ to *T }

// Schema implements huma.SchemaProvider.
func (change[T]) Schema(r huma.Registry) *huma.Schema {
	s := *r.Schema(reflect.TypeFor[T](), true, "")
	s.Nullable = true
	return &s
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *change[T]) UnmarshalJSON(data []byte) error {
	c.to = new(T)
	return json.Unmarshal(data, c.to) //nolint:wrapcheck // the schema was checked before
}

func (s *Server) describe(ctx context.Context, in *describeInput) (*threadOutput, error) {
	d := mailbox.Description{Title: in.Body.Title.to}
	if to := in.Body.Metadata.to; to != nil {
		if *to == nil {
			*to = map[string]any{}
		}
		data, err := json.Marshal(*to)
		if err != nil {
			return nil, s.failure(ctx, err)
		}
		d.Metadata = data
	}
	h, err := s.box().Describe(ctx, in.Thread, d)
	if err != nil {
		return nil, s.failureOf(ctx, err, "thread", in.Thread)
	}
	return &threadOutput{Body: viewOf(&h)}, nil
}

// deleteThread deletes a thread with everything in it, also the decision records of its runs.
func (s *Server) deleteThread(ctx context.Context, in *threadInput) (*struct{}, error) {
	_, err := s.box().Delete(ctx, in.Thread)
	switch {
	case errors.Is(err, mailbox.ErrBusy):
		return nil, problem(http.StatusConflict, "a run of the thread, or of one below it, is under way", "cancel or interrupt it, and delete the thread when it has ended")
	case err != nil:
		return nil, s.failureOf(ctx, err, "thread", in.Thread)
	}
	return nil, nil //nolint:nilnil // no content
}

type messagesInput struct {
	Thread string `path:"thread" maxLength:"256"`
	Before int    `query:"before" minimum:"1" doc:"The page ends before the message with this number; at the newest one if left out."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
	View   string `query:"view" enum:"log,model" default:"log" doc:"model is what the model sees now, as a whole: with summaries in the place of what was compacted."`
}

type messageList struct {
	Messages []logMessage `json:"messages" doc:"In the order of the log."`
	Before   int          `json:"before,omitempty" doc:"What before is for the page of older messages. Without it there are none."`
}

type logMessage struct {
	Seq     int         `json:"seq,omitempty" doc:"Its place in the log, from 1. Summaries have none."`
	RunID   string      `json:"run_id,omitempty"`
	At      *time.Time  `json:"at,omitempty"`
	Message abi.Message `json:"message"`
}

type messagesOutput struct{ Body messageList }

func (s *Server) messages(ctx context.Context, in *messagesInput) (*messagesOutput, error) {
	h, err := s.head(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	if in.View == "model" {
		if in.Before != 0 {
			return nil, problem(http.StatusUnprocessableEntity, "the view of the model has no pages", "leave before out").about("query.before")
		}
		return s.modelView(ctx, h)
	}
	end := h.Messages + 1
	if in.Before > 0 {
		end = min(in.Before, end)
	}
	from := max(end-in.Limit, 1)
	list, err := s.log(ctx, in.Thread, from, end-from)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := messageList{Messages: list}
	if from > 1 {
		out.Before = from
	}
	return &messagesOutput{Body: out}, nil
}

// log reads messages of a thread's log.
func (s *Server) log(ctx context.Context, id string, from, limit int) ([]logMessage, error) {
	out := []logMessage{}
	for limit > 0 {
		page, err := s.box().Messages(ctx, id, from, min(limit, pageSize))
		if err != nil || len(page) == 0 {
			return out, err //nolint:wrapcheck // clients do not see it
		}
		for _, m := range page {
			v, err := agentrun.DecodeMessage(m)
			if err != nil {
				return nil, err //nolint:wrapcheck // clients do not see it
			}
			out = append(out, logMessage{Seq: m.Seq, RunID: m.Run, At: maybe(m.At), Message: v})
		}
		from, limit = from+len(page), limit-len(page)
	}
	return out, nil
}

// modelView is the log as the model sees it.
func (s *Server) modelView(ctx context.Context, h mailbox.Thread) (*messagesOutput, error) {
	list, err := s.log(ctx, h.ID, 1, h.Messages)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	c := s.cfg.Runtime.Compactor()
	if c == nil {
		return &messagesOutput{Body: messageList{Messages: list}}, nil
	}
	plain, known := make([]abi.Message, 0, len(list)), make(map[string]*logMessage, len(list))
	for i := range list {
		plain = append(plain, list[i].Message)
		known[list[i].Message.ID] = &list[i]
	}
	out := []logMessage{}
	for _, m := range c.View(h.ID, plain) {
		v := logMessage{Message: m}
		if from := known[m.ID]; from != nil {
			v.Seq, v.RunID, v.At = from.Seq, from.RunID, from.At
		}
		out = append(out, v)
	}
	return &messagesOutput{Body: messageList{Messages: out}}, nil
}

type decidedInput struct {
	Thread string `path:"thread" maxLength:"256"`
	Run    string `query:"run" maxLength:"256" doc:"The run; the thread's latest one if left out."`
}

type decidedOutput struct {
	Body struct {
		RunID   string            `json:"run_id"`
		Entries []thread.Decision `json:"entries"`
		Ends    []thread.RunEnd   `json:"ends,omitempty"`
		Dropped int               `json:"dropped,omitempty" doc:"Entries that had no room in the record."`
	}
}

func (s *Server) decided(ctx context.Context, in *decidedInput) (*decidedOutput, error) {
	h, err := s.head(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	id := h.Latest.ID
	if in.Run != "" {
		switch run, ok, err := s.box().Run(ctx, in.Run); {
		case err != nil:
			return nil, s.failure(ctx, err)
		case ok && run.Thread != in.Thread:
			return nil, problem(http.StatusNotFound, fmt.Sprintf("this thread has no run %.260q", in.Run), "")
		}
		id = in.Run // of the mailbox, or of the proxy
	}
	r, err := s.cfg.Records.In(ctx, in.Thread, id)
	if errors.Is(err, thread.ErrNoRecord) {
		return nil, notFound("record of run", id)
	}
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &decidedOutput{}
	out.Body.RunID, out.Body.Entries, out.Body.Ends = id, append([]thread.Decision{}, r.Entries...), r.Ends
	for _, e := range r.Ends {
		out.Body.Dropped += e.Dropped
	}
	return out, nil
}
