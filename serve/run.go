package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

func (s *Server) box() *mailbox.Mailbox { return s.cfg.Runtime.Mailbox() }

func runPath(run string) string         { return "/v1/runs/" + url.PathEscape(run) }
func messagesPath(thread string) string { return "/v1/threads/" + url.PathEscape(thread) + "/messages" }

type runInput struct {
	Run string `path:"run" maxLength:"256"`
}

type runView struct {
	ID          string     `json:"id"`
	ThreadID    string     `json:"thread_id"`
	Agent       string     `json:"agent,omitempty"`
	ParentRunID string     `json:"parent_run_id,omitempty"`
	Status      string     `json:"status" enum:"created,running,waiting,done"`
	Termination string     `json:"termination,omitempty" doc:"Why it is done."`
	Wait        string     `json:"wait,omitempty" doc:"What it waits for."`
	WaitUntil   *time.Time `json:"wait_until,omitempty"`
	Tickets     []ticket   `json:"tickets,omitempty" doc:"The calls that wait for a decision."`
	Output      string     `json:"output,omitempty" doc:"Its last text."`
	Error       string     `json:"error,omitempty"`
	Steps       int        `json:"steps"`
	Usage       abi.Usage  `json:"usage"`
	Cost        float64    `json:"cost,omitempty"`
	Attempts    int        `json:"attempts" doc:"How often it was executed since it last made a step."`
	LastError   string     `json:"last_error,omitempty" doc:"What went wrong in an attempt, or was refused."`
	CreatedAt   time.Time  `json:"created_at"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`
}

type ticket struct {
	ID             string       `json:"id"`
	Call           abi.ToolCall `json:"call"`
	Action         string       `json:"action,omitempty"`
	Message        string       `json:"message,omitempty"`
	Mode           string       `json:"mode,omitempty"`
	Reason         string       `json:"reason,omitempty"`
	By             string       `json:"by,omitempty" doc:"The plugin that asks."`
	Parameters     any          `json:"parameters,omitempty"`
	ResponseSchema any          `json:"response_schema,omitempty"`
}

type runOutput struct{ Body runView }

// run reads a run, or fails with a [Problem].
func (s *Server) run(ctx context.Context, id string) (mailbox.Run, error) {
	run, found, err := s.box().Run(ctx, id)
	if err != nil || !found {
		return run, cmp.Or(s.failure(ctx, err), error(notFound("run", id)))
	}
	s.outage.Store(false)
	return run, nil
}

func (s *Server) getRun(ctx context.Context, in *runInput) (*runOutput, error) {
	run, err := s.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	d, _, err := s.box().Dispatch(ctx, run.Dispatch)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	r, err := s.record(ctx, run)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	v := runView{
		ID: run.ID, ThreadID: run.Thread, Agent: cmp.Or(run.Agent, s.cfg.Runtime.DefaultAgent()), ParentRunID: run.Parent, Status: string(run.Status), Termination: run.Termination,
		Wait: run.Wait, WaitUntil: maybe(run.WaitUntil), Output: run.Response, Error: run.Error, Attempts: attempts(&d), LastError: d.LastError,
		CreatedAt: run.CreatedAt, StartedAt: maybe(run.StartedAt), FinishedAt: maybe(run.FinishedAt),
	}
	v.Steps, v.Usage, v.Cost = r.Steps, r.Usage, r.Cost
	if r.Waiting != nil {
		v.Tickets = tickets(r.Waiting.Tickets)
	}
	return &runOutput{Body: v}, nil
}

// record is what the loop keeps of a run, with the tickets that it waits for. One that has not begun has none.
func (s *Server) record(ctx context.Context, run mailbox.Run) (r agent.Record, err error) {
	if json.Unmarshal(run.Data, &r) != nil || run.Status != mailbox.RunWaiting {
		return r, nil //nolint:nilerr // there is none yet
	}
	image, err := s.box().Image(ctx, run.Thread)
	if err != nil {
		return r, err //nolint:wrapcheck // clients do not see it
	}
	if waiting, err := agentrun.DecodeRun(image); err == nil && waiting.RunID == run.ID {
		r = waiting
	}
	return r, nil
}

// attempts is how often a dispatch was executed: it counts itself those that failed.
func attempts(d *mailbox.Dispatch) int {
	if d.Token == "" || d.Status == mailbox.Queued || d.Status == mailbox.DeadLetter {
		return d.Attempts
	}
	return d.Attempts + 1
}

func tickets(list []agent.Ticket) (out []ticket) {
	for i := range list {
		t := &list[i]
		out = append(out, ticket{
			ID: t.ID, Call: t.Call, Action: t.Action, Message: t.Message, Mode: string(t.Mode), Reason: t.Reason, By: t.By,
			Parameters: t.Parameters, ResponseSchema: t.ResponseSchema,
		})
	}
	return out
}

func maybe(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

type eventsInput struct {
	Run         string `path:"run" maxLength:"256"`
	After       string `query:"after" maxLength:"64" doc:"The id of the event after which the stream begins." example:"1-7"`
	Format      string `query:"format" enum:"ag-ui" doc:"ag-ui sends the events of the AG-UI protocol."`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"As after, which it overrides."`
}

func (s *Server) events(ctx context.Context, in *eventsInput) (*streamed, error) {
	field := "query.after"
	if in.LastEventID != "" {
		field = "header.Last-Event-ID"
	}
	at, err := parsePosition(cmp.Or(in.LastEventID, in.After), field)
	if err != nil {
		return nil, err
	}
	run, err := s.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return &streamed{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		if at.event == ended && run.Status == mailbox.RunDone {
			w.WriteHeader(http.StatusNoContent) // an EventSource stops
			return
		}
		s.stream(ctx, w, run, view{after: at, format: in.Format})
	}}, nil
}

func (s *Server) cancel(ctx context.Context, in *runInput) (*effectOutput, error) {
	run, err := s.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	ok := false
	if run.Status != mailbox.RunDone {
		if ok, err = s.box().CancelRun(ctx, run.ID); err != nil {
			return nil, s.failure(ctx, err)
		}
	}
	s.changed(ctx, "cancel", run, ok)
	return &effectOutput{Body: effect{RunID: run.ID, Effect: ok, Status: string(run.Status)}}, nil
}

// interrupt interrupts the thread of a run, if that is the run which the thread executes.
func (s *Server) interrupt(ctx context.Context, in *runInput) (*effectOutput, error) {
	run, err := s.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	head, err := s.box().Thread(ctx, run.Thread)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	ok := false
	if head.Open.ID == run.ID && run.Status != mailbox.RunDone {
		out, err := s.box().Interrupt(ctx, run.Thread)
		if err != nil {
			return nil, s.failure(ctx, err)
		}
		ok = out.Active != nil || len(out.Superseded) > 0
	}
	s.changed(ctx, "interrupt", run, ok)
	return &effectOutput{Body: effect{RunID: run.ID, Effect: ok, Status: string(run.Status)}}, nil
}
