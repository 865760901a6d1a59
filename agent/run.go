package agent

import (
	"cmp"
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
	// filled in. They must fit: known roles, ids that the thread does not have yet,
	// and the results of any calls among them.
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
	// last is the id of the newest assistant message with text of this run.
	last string
	// known and offered are the tools at the last request, before and after what
	// plugins left out.
	known, offered []abi.Tool
}

// Run runs the thread until the model is done, something stops it, or ctx ends.
// The Result is valid also when there is an error, unless the run was refused:
// with [ErrThreadBusy], or with [ErrMessages] when the messages do not fit the
// conversation. A refused run leaves no trace.
func (a *Agent) Run(ctx context.Context, req Request) (Result, error) {
	if req.ThreadID == "" {
		return Result{}, errors.New("agent: Request.ThreadID is missing")
	}
	t := a.Thread(req.ThreadID)
	input := slices.Clone(req.Messages)
	a.identify(input)
	box, err := t.begin(a.cfg.InboxDepth, input)
	if err != nil {
		return Result{}, fmt.Errorf("agent: thread %q: %w", req.ThreadID, err)
	}
	r := &run{
		agent: a, cfg: &a.cfg, thread: t, box: box,
		state: a.cfg.Phases.NewState(t.State()),
		id:    abi.RunIdentity{ThreadID: t.id, RunID: cmp.Or(req.RunID, a.cfg.NewID()), AgentID: a.cfg.AgentID},
	}
	r.send(ctx, Event{Type: EventRunStart})
	var stop *Termination
	err = recovered(func() (err error) {
		stop, err = r.loop(ctx, input)
		return err
	})
	return r.finish(ctx, stop, err)
}

// loop runs steps until one of them ends the run.
func (r *run) loop(ctx context.Context, input []abi.Message) (*Termination, error) {
	r.settle()
	r.thread.append(input...)
	r.refresh()
	if err := r.cfg.Phases.Activate(ctx, r.state, r.id); err != nil {
		return nil, err
	}
	if stop, err := r.fire(ctx, abi.RunStart, frame{}); stop != nil || err != nil {
		return stop, err
	}
	for {
		if r.cfg.MaxRounds > 0 && r.step >= r.cfg.MaxRounds {
			detail := fmt.Sprintf("reached %d rounds", r.cfg.MaxRounds)
			return &Termination{Type: Stopped, Code: StopMaxRounds, Detail: detail}, nil
		}
		if stop, err := r.runStep(ctx); stop != nil || err != nil {
			return stop, err
		}
	}
}

// finish is the one exit of a run. Nothing in it may keep the thread busy.
func (r *run) finish(ctx context.Context, stop *Termination, err error) (Result, error) {
	end, err := r.ended(ctx, stop, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Grace)
	defer cancel()
	last := errors.Join(
		recovered(func() error { r.settle(); return nil }),
		recovered(func() error { _, err := r.fire(ctx, abi.RunEnd, frame{}); return err }),
	)
	if last != nil {
		last = fmt.Errorf("agent: run %s: %w", r.id.RunID, last)
		if err == nil {
			end = Termination{Type: Failed, Detail: last.Error()}
		}
		err = errors.Join(err, last)
	}
	r.thread.keep(r.state.Export())
	result := Result{RunID: r.id.RunID, Response: r.thread.text(r.last), Termination: end, Steps: r.step}
	outcome := result
	r.send(ctx, Event{Type: EventRunFinish, Outcome: &outcome})
	r.thread.end()
	return result, err
}

// ended turns what ended the loop into a termination. A run that was done before
// its context ended is done.
func (r *run) ended(ctx context.Context, stop *Termination, err error) (Termination, error) {
	switch {
	case err == nil && stop != nil:
		return *stop, nil
	case ctx.Err() != nil:
		return Termination{Type: Cancelled, Detail: context.Cause(ctx).Error()}, fmt.Errorf("agent: run %s: %w", r.id.RunID, ctx.Err())
	default:
		return Termination{Type: Failed, Detail: err.Error()}, fmt.Errorf("agent: run %s: %w", r.id.RunID, err)
	}
}

// refresh takes the log as it is now and projects it to what the model sees.
func (r *run) refresh() {
	r.view = r.thread.snapshot()
	if r.cfg.Compactor != nil {
		r.view = r.cfg.Compactor.View(r.thread.id, r.view)
	}
}

// send tells the listener. A listener that panics loses the event, and the run
// goes on: it is not the listener's to end.
func (r *run) send(ctx context.Context, e Event) {
	e.At, e.ThreadID, e.RunID = r.cfg.Now(), r.id.ThreadID, r.id.RunID
	if e.Step == 0 {
		e.Step = r.step
	}
	if err := recovered(func() error { r.cfg.Listen(ctx, e); return nil }); err != nil {
		r.cfg.Logger.ErrorContext(ctx, "listener panicked", "event_type", string(e.Type), "run_id", e.RunID, "error", err)
	}
}

// recovered turns a panic into an error.
func recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %.512v", ErrPanic, p)
		}
	}()
	return do()
}
