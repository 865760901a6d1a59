package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/phases"
)

// Request starts a run.
type Request struct {
	// ThreadID of the conversation. Required.
	ThreadID string
	// Messages to add to it; none continues the thread as it is. Missing ids are
	// filled in.
	Messages []abi.Message
	// RunID is made when empty.
	RunID string
}

// run is one activation. Only the goroutine of Run touches it.
type run struct {
	agent  *Agent
	cfg    *Config
	thread *Thread
	box    *inbox.Box
	state  *phases.State
	id     abi.RunIdentity
	step   int
	// view is what the model sees, as of the last refresh.
	view    []abi.Message
	notices []abi.Notice
	context contextStore
	// last is the newest assistant text of this run.
	last string
}

// Run runs the thread until the model is done, something stops it, or ctx ends.
// The Result is valid also when there is an error.
func (a *Agent) Run(ctx context.Context, req Request) (Result, error) {
	if req.ThreadID == "" {
		return Result{}, errors.New("agent: Request.ThreadID is missing")
	}
	t := a.Thread(req.ThreadID)
	box, err := t.begin(a.cfg.InboxDepth)
	if err != nil {
		return Result{}, fmt.Errorf("agent: thread %q: %w", req.ThreadID, err)
	}
	id := req.RunID
	if id == "" {
		id = a.cfg.NewID()
	}
	r := &run{
		agent: a, cfg: &a.cfg, thread: t, box: box,
		state: a.cfg.Phases.NewState(t.State()),
		id:    abi.RunIdentity{ThreadID: t.id, RunID: id, AgentID: a.cfg.AgentID},
	}
	r.send(ctx, Event{Type: EventRunStart})
	end, err := r.loop(ctx, req.Messages)
	return r.finish(ctx, end, err)
}

// loop runs steps until one of them ends the run.
func (r *run) loop(ctx context.Context, input []abi.Message) (Termination, error) {
	r.settle()
	input = slices.Clone(input)
	r.agent.identify(input)
	r.thread.append(input...)
	r.refresh()
	stop, err := r.fire(ctx, abi.RunStart, frame{})
	if stop != nil || err != nil {
		return r.ended(ctx, stop, err)
	}
	for {
		if r.cfg.MaxRounds > 0 && r.step >= r.cfg.MaxRounds {
			detail := fmt.Sprintf("reached %d rounds", r.cfg.MaxRounds)
			return Termination{Type: Stopped, Code: StopMaxRounds, Detail: detail}, nil
		}
		stop, err := r.runStep(ctx)
		if stop != nil || err != nil {
			return r.ended(ctx, stop, err)
		}
	}
}

// ended turns what ended the loop into a termination.
func (r *run) ended(ctx context.Context, stop *Termination, err error) (Termination, error) {
	switch {
	case ctx.Err() != nil:
		return Termination{Type: Cancelled, Detail: context.Cause(ctx).Error()}, fmt.Errorf("agent: run %s: %w", r.id.RunID, ctx.Err())
	case err != nil:
		return Termination{Type: Failed, Detail: err.Error()}, fmt.Errorf("agent: run %s: %w", r.id.RunID, err)
	default:
		return *stop, nil
	}
}

// finish is the one exit of a run.
func (r *run) finish(ctx context.Context, end Termination, err error) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Grace)
	defer cancel()
	r.settle()
	if _, fireErr := r.fire(ctx, abi.RunEnd, frame{}); fireErr != nil && err == nil {
		end = Termination{Type: Failed, Detail: fireErr.Error()}
		err = fmt.Errorf("agent: run %s: %w", r.id.RunID, fireErr)
	}
	r.thread.end(r.state.Export())
	result := Result{RunID: r.id.RunID, Response: r.last, Termination: end, Steps: r.step}
	r.send(ctx, Event{Type: EventRunFinish, Outcome: &result})
	return result, err
}

// settle takes what waits in the inbox: notices about compactions are consumed
// first, messages go to the log, the rest is shown to the plugins at the next
// phase and, as a message, to the model.
func (r *run) settle() (arrived bool) {
	waiting := append(r.thread.takeHeld(), r.box.Drain()...)
	for _, n := range waiting {
		if r.cfg.Compactor != nil && r.cfg.Compactor.Consume(r.thread.id, r.thread.snapshot(), n) {
			continue
		}
		r.notices = append(r.notices, n)
		if n.Housekeeping {
			continue
		}
		messages := n.Messages
		if n.Kind != abi.NoticeMessages {
			messages = []abi.Message{noticeMessage(n)}
		}
		messages = slices.Clone(messages)
		r.agent.identify(messages)
		r.thread.append(messages...)
		arrived = arrived || len(messages) > 0
	}
	if len(waiting) > 0 {
		r.refresh()
	}
	return arrived
}

// refresh takes the log as it is now and projects it to what the model sees.
func (r *run) refresh() {
	r.view = r.thread.snapshot()
	if r.cfg.Compactor != nil {
		r.view = r.cfg.Compactor.View(r.thread.id, r.view)
	}
}

func (r *run) send(ctx context.Context, e Event) {
	e.At, e.ThreadID, e.RunID = r.cfg.Now(), r.id.ThreadID, r.id.RunID
	if e.Step == 0 {
		e.Step = r.step
	}
	r.cfg.Listen(ctx, e)
}
