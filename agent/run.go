package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// Request starts a run, or resumes one that waits.
type Request struct {
	// ThreadID of the conversation. Required.
	ThreadID string
	// Messages to add to it; none continues the thread as it is. Missing ids are
	// filled in. They must fit: known roles, ids that the thread does not have yet,
	// and the results of any calls among them. A user's message without Decisions
	// supersedes calls that wait for a decision.
	Messages []abi.Message
	// RunID is that of a new run; made when empty. It must not have been used.
	RunID string
	// ContinueRunID names the waiting run that is to continue. Without it, and without
	// RunID, the thread's waiting run continues if there is one.
	ContinueRunID string
	// Decisions about calls that wait.
	Decisions []Decision
	// Wait keeps a run that comes to wait in the process, until it can continue, ctx is
	// done or Config.WaitLimit is over.
	Wait bool
	// FrontendTools are executed by the caller: calls of them are suspended, and
	// the decision's result is theirs.
	FrontendTools []abi.Tool
	// Override changes each inference of the run.
	Override *abi.InferenceOverride
	// AgentID of the agent to run; that of the thread, or of the config, when empty.
	AgentID string
	// ParentRunID, DispatchID, SessionID, Mode and Adapter are passed to plugins, see
	// abi.RunIdentity.
	ParentRunID string
	DispatchID  string
	SessionID   string
	Mode        abi.RunMode
	Adapter     string
	// Origin, ParentThreadID, SenderID, TransportRequestID and DispatchIDHint are passed to
	// plugins, too. They are those of each request, also of one that continues a run.
	Origin             string
	ParentThreadID     string
	SenderID           string
	TransportRequestID string
	DispatchIDHint     string
}

// run is one activation: from run_start to run_finish. Only the goroutine of Run
// touches it.
type run struct {
	agent *Agent
	cfg   *Config
	lifetime
	activation
	projection
	audience
}

// lifetime is what the activations of a run share.
type lifetime struct {
	thread  *Thread
	control *Control
	req     Request
	record  Record
	notices []abi.Notice
	// hand are notifications that were taken and are not done.
	hand *hand
	// last is the id of the newest assistant message with text of this run.
	last string
	// woke reports that something came for the model while the run waited.
	woke bool
}

// activation is what begins with run_start.
type activation struct {
	input []abi.Message
	// superseding reports that the input replaces calls that wait.
	superseding bool
	who         profile
	state       *phases.State
	id          abi.RunIdentity
	step        int
	began       time.Time
	// first is the length of the log before the activation wrote to it.
	first int
	// tasks reports that the run ends because it waits for them.
	tasks bool
}

// projection is what the model sees.
type projection struct {
	// view are the messages as of the last refresh, and full the same before they
	// were cut because a provider had refused them.
	view, full []abi.Message
	context    contextStore
	// known and offered are the tools at the last request, before and after what
	// plugins left out.
	known, offered []abi.Tool
}

// audience is what the listener knows.
type audience struct {
	// shown is what it knows of the state, sent how many messages of the log were given to them.
	shown display
	told  int
	// rewrote reports that plugins changed one of these messages.
	rewrote bool
	// announced are the calls of a stream whose start was sent already.
	announced map[string]bool
}

// Run runs the thread until the model is done, something stops it, or ctx ends.
// The Result is valid also when there is an error, unless the run was refused:
// with [ErrThreadBusy], with [ErrMessages] when the messages do not fit the
// conversation, with [ErrNoTicket] for a decision that no call waits for, or because of
// a run id that is wrong. A refused run leaves no trace.
func (a *Agent) Run(ctx context.Context, req Request) (Result, error) {
	if req.ThreadID == "" {
		return Result{}, errors.New("agent: Request.ThreadID is missing")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := a.open(ctx, req, &Control{agent: a, thread: a.Thread(req.ThreadID), cancel: cancel, done: make(chan struct{})})
	if err != nil {
		return Result{}, err
	}
	for {
		stop, err := r.loop(ctx)
		result, err := r.finish(ctx, stop, err)
		waits := err == nil && result.Status == StatusWaiting
		// A decision may have come while the run came to its end.
		if again := waits && (req.Wait && r.await(ctx) || !r.thread.seal(a.cfg.ToolMode)); !again {
			r.giveBack()
			a.leave(r.id.RunID)
			r.thread.end()
			return result, err
		}
		r = r.next()
	}
}

// next is the activation that follows when what the run waited for has come.
func (r *run) next() *run {
	mode := abi.RunInternalWake
	if r.record.Waiting != nil && r.record.Waiting.Reason.Decided() {
		mode = abi.RunResume
	}
	n := &run{agent: r.agent, cfg: r.cfg, lifetime: r.lifetime}
	n.record.Mode = mode
	return n
}

// begin sets up agent, state and record, and notifies the listener that the run has started.
func (r *run) begin(ctx context.Context) error {
	r.began = time.Now()
	t := r.thread
	t.mu.Lock()
	state, image, went := t.state, t.image, r.record.open()
	r.first, r.told = len(t.log), len(t.log)
	if went && r.last == "" {
		r.last = t.lastOf(r.record.RunID)
	}
	t.mu.Unlock()
	agentID := cmp.Or(r.req.AgentID, handedTo(state), r.record.AgentID, r.cfg.AgentID)
	who, err := r.agent.resolve(ctx, agentID)
	if err != nil {
		// The exit needs plugins to fire: those of the base agent.
		r.who, err = r.agent.base, fmt.Errorf("agent %.120q: %w", agentID, err)
	} else {
		r.who = who
	}
	r.state = r.who.phases.NewState(state)
	if went {
		if st, failed := r.who.phases.Resume(struct {
			Revision uint64
			Values   map[string]any
		}(image), false); failed != nil {
			err = errors.Join(err, failed)
		} else {
			r.state = st
		}
	}
	err = errors.Join(err, r.watch())
	r.id = abi.RunIdentity{
		ThreadID: t.id, RunID: r.record.RunID, ParentRunID: r.record.ParentRunID, AgentID: agentID,
		DispatchID: r.record.DispatchID, SessionID: r.record.SessionID, Mode: r.record.Mode, Adapter: r.req.Adapter,
		Origin: r.req.Origin, ParentThreadID: r.req.ParentThreadID, SenderID: r.req.SenderID,
		TransportRequestID: r.req.TransportRequestID, DispatchIDHint: r.req.DispatchIDHint,
	}
	r.step = r.record.Steps
	r.record.AgentID, r.record.Activations = agentID, r.record.Activations+1
	r.record.Waiting = nil
	r.record.move(StatusRunning, "")
	identity := r.id
	r.send(ctx, Event{Type: EventRunStart, Identity: &identity})
	return err
}

// loop takes the run from run_start through its steps, until one of them ends it.
func (r *run) loop(ctx context.Context) (stop *Termination, err error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer catch(&err)
	if stop, err := r.enter(ctx); stop != nil || err != nil {
		return stop, err
	}
	for {
		if stop := r.mayStep(); stop != nil {
			return stop, nil
		}
		called, stop, err := r.takeStep(ctx)
		if stop != nil || err != nil {
			return stop, err
		}
		if !r.continues(ctx, called) {
			return &Termination{Type: NaturalEnd}, nil
		}
	}
}

// enter takes what is there for the run to the log, and fires run_start.
func (r *run) enter(ctx context.Context) (*Termination, error) {
	if r.superseding {
		r.supersede(ctx, "the user wrote something new instead of deciding")
	}
	r.known = r.listTools()
	r.offered = r.known
	arrived := r.collect(ctx) || r.woke
	from := r.thread.size()
	r.thread.append(r.input...)
	r.told += len(r.input)
	if len(r.input) > 0 {
		r.record.Input = [2]int{from, from + len(r.input)}
	}
	r.refresh()
	if err := r.checkpoint(ctx, nil); err != nil {
		return nil, err
	}
	if err := r.who.phases.Activate(ctx, r.state, r.id); err != nil {
		return nil, err
	}
	if _, stop, err := r.fire(ctx, abi.RunStart, frame{}); stop != nil || err != nil {
		return stop, err
	}
	resumed, stop, err := r.replay(ctx)
	if stop != nil || err != nil {
		return stop, err
	}
	if r.woken() && !arrived && !resumed {
		return &Termination{Type: NaturalEnd}, nil
	}
	return nil, nil
}

// woken reports whether the run continues after it had ended, with nothing to add: its
// tasks are over, and the model has answered everything. So it is with a run that
// begins because of notifications.
func (r *run) woken() bool {
	if len(r.input) > 0 || r.record.Activations < 2 {
		return len(r.input) == 0 && r.record.Mode == abi.RunInternalWake
	}
	log := r.thread.snapshot()
	return len(log) > 0 && log[len(log)-1].Role == abi.RoleAssistant
}

// refresh takes the log as it is now and projects it to what the model sees.
func (r *run) refresh() {
	r.view = r.thread.snapshot()
	if r.cfg.Compactor != nil {
		r.view = r.cfg.Compactor.View(r.thread.id, r.view)
	}
	r.full = r.view
	r.view = r.fitted(r.view)
}

// send notifies the listener. A listener that panics loses the event, and the run
// continues.
func (r *run) send(ctx context.Context, e Event) {
	e.At, e.ThreadID, e.RunID = r.cfg.Now(), r.id.ThreadID, r.id.RunID
	if e.Step == 0 {
		e.Step = r.step
	}
	if err := recovered(func() error { r.cfg.Listen(ctx, e); return nil }); err != nil {
		r.cfg.Logger.ErrorContext(ctx, "listener panicked", "event_type", string(e.Type), "run_id", e.RunID, "error", err)
	}
}

// catch, when deferred, turns a panic into an error.
//
//nolint:gocritic // the caller's result is set
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %.512v", ErrPanic, p)
	}
}

// recovered turns a panic of code of the embedder into an error.
func recovered(do func() error) (err error) {
	defer catch(&err)
	return do()
}
