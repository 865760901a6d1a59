package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// claim takes the thread for a run. It comes before everything else, so that a
// cancellation finds the run however early it comes.
func (t *Thread) claim(c *Control) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil {
		return ErrThreadBusy
	}
	t.live, t.sealed = c, false
	return nil
}

// end frees the thread.
func (t *Thread) end() {
	t.mu.Lock()
	live := t.live
	t.live = nil
	t.mu.Unlock()
	close(live.done)
}

// keep keeps what plugins want kept: for the next run, and for this one if it
// continues.
func (t *Thread) keep(state map[string]any, image StateImage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.image = state, image
}

func (t *Thread) setRecord(r Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record = r
	t.runs[r.RunID] = true
}

// open takes the thread and settles which run it is to be. A run that is refused
// leaves no trace.
func (a *Agent) open(ctx context.Context, req Request, control *Control) (*run, error) {
	t := control.thread
	if err := t.claim(control); err != nil {
		return nil, fmt.Errorf("agent: thread %q: %w", req.ThreadID, err)
	}
	var r *run
	err := recovered(func() (err error) {
		r, err = a.prepare(ctx, t, req)
		return err
	})
	if err != nil {
		t.end()
		return nil, fmt.Errorf("agent: thread %q: %w", req.ThreadID, err)
	}
	r.control = control
	return r, nil
}

// prepare reads the thread, finds the run's record and checks what the request
// brings. Only then it changes anything.
func (a *Agent) prepare(ctx context.Context, t *Thread, req Request) (*run, error) {
	if err := a.load(ctx, t); err != nil {
		return nil, err
	}
	record, err := a.runOf(ctx, t, req)
	if err != nil {
		return nil, err
	}
	input := slices.Clone(req.Messages)
	a.identify(input)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.fits(input); err != nil {
		return nil, err
	}
	tickets, err := decided(t.tickets, req.Decisions, a.cfg.Now(), a.cfg.NewID)
	if err != nil {
		return nil, err
	}
	if other := a.enter(record.RunID, t); other {
		return nil, fmt.Errorf("run_id_hint '%s' already exists as a run", record.RunID)
	}
	t.tickets = tickets
	r := &run{agent: a, cfg: &a.cfg, lifetime: lifetime{thread: t, req: req, record: record}, activation: activation{input: input}}
	r.superseding = len(req.Decisions) == 0 && slices.ContainsFunc(input, visibleUser)
	return r, nil
}

func visibleUser(m abi.Message) bool {
	return m.Role == abi.RoleUser && m.Visibility != abi.VisibilityInternal
}

// runOf is the record of the run that a request is for: one that it names, one that
// waits, or a new one.
func (a *Agent) runOf(ctx context.Context, t *Thread, req Request) (Record, error) {
	t.mu.Lock()
	latest := t.record
	t.mu.Unlock()
	hint := strings.TrimSpace(req.RunID)
	if id := req.ContinueRunID; id != "" {
		exists, err := a.exists(ctx, t, id)
		switch {
		case err != nil:
			return Record{}, err
		case !exists:
			return Record{}, fmt.Errorf("invalid resume: continue_run_id '%s' does not reference an existing run", id)
		case latest.RunID != id || !latest.open():
			return Record{}, fmt.Errorf("invalid resume: continue_run_id '%s' references a run that cannot continue; its thread has run '%s', which is %s",
				id, latest.RunID, latest.Status)
		}
		return a.again(latest, req), nil
	}
	if hint != "" {
		exists, err := a.exists(ctx, t, hint)
		if err != nil {
			return Record{}, err
		}
		if exists && (latest.RunID != hint || latest.Status != StatusCreated) {
			return Record{}, fmt.Errorf("run_id_hint '%s' already exists as a run", hint)
		}
	} else if latest.open() {
		return a.again(latest, req), nil
	}
	now := a.cfg.Now()
	record := Record{
		RunID: cmp.Or(hint, a.cfg.NewID()), ThreadID: t.id, ParentRunID: req.ParentRunID, DispatchID: req.DispatchID, SessionID: req.SessionID,
		Mode: req.Mode, Status: StatusCreated, CreatedAt: now, UpdatedAt: now,
	}
	record.AgentID = cmp.Or(req.AgentID, latest.AgentID, a.cfg.AgentID)
	return record, nil
}

// again is the record of a run that continues.
func (a *Agent) again(record Record, req Request) Record {
	record.DispatchID, record.SessionID = req.DispatchID, req.SessionID
	record.Mode = req.Mode
	if record.Mode == "" && len(req.Decisions) > 0 {
		record.Mode = abi.RunResume
	}
	record.AgentID = cmp.Or(req.AgentID, record.AgentID)
	return record
}

// exists reports whether there is, or was, a run of that id.
func (a *Agent) exists(ctx context.Context, t *Thread, runID string) (bool, error) {
	t.mu.Lock()
	known := t.runs[runID]
	t.mu.Unlock()
	if known || a.cfg.Checkpoints == nil {
		return known, nil
	}
	_, found, err := a.cfg.Checkpoints.FindRun(ctx, runID)
	if err != nil {
		return false, fmt.Errorf("storage failed: %w", err)
	}
	return found, nil
}

// Load reads a thread from the checkpoints, unless that was done before, and
// returns it. [Agent.Run] and [Agent.Append] do it by themselves.
func (a *Agent) Load(ctx context.Context, thread string) (*Thread, error) {
	if thread == "" {
		return nil, errors.New("agent: the id of the thread is missing")
	}
	t := a.Thread(thread)
	if err := a.load(ctx, t); err != nil {
		return nil, fmt.Errorf("agent: thread %q: %w", thread, err)
	}
	return t, nil
}

func (a *Agent) load(ctx context.Context, t *Thread) error {
	if a.cfg.Checkpoints == nil {
		return nil
	}
	t.reading.Lock()
	defer t.reading.Unlock()
	t.mu.Lock()
	loaded := t.loaded
	t.mu.Unlock()
	if loaded {
		return nil
	}
	c, found, err := a.cfg.Checkpoints.LoadThread(ctx, t.id)
	if err != nil {
		return fmt.Errorf("storage failed: %w", err)
	}
	return t.restore(c, found)
}

// restore takes over a checkpoint. What a step had written when its process ended is
// kept; its calls that have no result were interrupted.
func (t *Thread) restore(c Checkpoint, found bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = true
	if !found {
		return nil
	}
	t.add(c.Messages)
	t.savedTo = len(t.log)
	t.add(interrupted(c.Open))
	t.record, t.tickets, t.state, t.image = c.Run, slices.Clone(c.Tickets), c.State.Values, c.State
	t.runs[c.Run.RunID] = true
	t.restoreHeld(c.Held)
	maps.Copy(t.taken, c.Taken)
	return nil
}

// interrupted closes a step that was under way.
func interrupted(open []abi.Message) []abi.Message {
	if len(open) == 0 {
		return nil
	}
	out := slices.Clone(open)
	for _, call := range open[0].ToolCalls {
		if slices.ContainsFunc(open[1:], func(m abi.Message) bool { return m.ToolCallID == call.ID }) {
			continue
		}
		out = append(out, resultMessage(call, failed(call, maybeExecuted), newID()))
	}
	return out
}
