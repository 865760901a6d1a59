package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// Errors of [Agent.Control].
var (
	// ErrNoRun is an id that is neither that of a run under way nor that of a thread
	// with one.
	ErrNoRun = errors.New("there is no such run under way")
	// ErrAmbiguous is an id that is that of a run and of another run's thread.
	ErrAmbiguous = errors.New("the id is ambiguous")
	// ErrCancelled is the cause of a run that [Control.Cancel] ended.
	ErrCancelled = errors.New("the run was cancelled")
	// ErrContinued is the cause of a context that ends a run here because another process continues
	// it. An answer that is cut off then is counted and not kept: the model is asked again.
	ErrContinued = errors.New("another process continues the run")
)

// Control steers a run that is under way. It is safe for concurrent use, and does
// nothing once the run is over.
type Control struct {
	agent  *Agent
	thread *Thread
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// Control finds a run under way by its id or by that of its thread.
func (a *Agent) Control(id string) (*Control, error) {
	a.mu.Lock()
	byRun, byThread := a.live[id], a.threads[id]
	a.mu.Unlock()
	var run, thread *Control
	if byRun != nil {
		run = byRun.control()
	}
	if byThread != nil {
		thread = byThread.control()
	}
	switch {
	case run == nil && thread == nil:
		return nil, fmt.Errorf("agent: %.120q: %w", id, ErrNoRun)
	case run != nil && thread != nil && run != thread:
		return nil, fmt.Errorf("agent: %.120q: %w: it is that of a run, and of the thread of another run", id, ErrAmbiguous)
	case run != nil:
		return run, nil
	default:
		return thread, nil
	}
}

func (t *Thread) control() *Control {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// enter makes a run known by its id. It reports whether another thread has one of that
// id. The caller holds the thread's lock.
func (a *Agent) enter(runID string, t *Thread) (taken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if other := a.live[runID]; other != nil && other != t {
		return true
	}
	a.live[runID] = t
	return false
}

func (a *Agent) leave(runID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.live, runID)
}

// ThreadID is that of the run's thread.
func (c *Control) ThreadID() string { return c.thread.id }

// Cancel asks the run to end and does not wait. Tools and hooks that ignore it are
// abandoned after their grace time.
func (c *Control) Cancel() { c.cancel(ErrCancelled) }

// Wait returns when the thread is free again, or when ctx is done.
func (c *Control) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("agent: thread %q: wait for its run: %w", c.thread.id, context.Cause(ctx))
	}
}

// Decide tells the run what was decided about calls that wait. Decisions that name
// no such call are refused, all of them ([ErrNoTicket]), and the run
// continues as it was. A run that does not wait in this process gets them by [Request.Decisions].
func (c *Control) Decide(decisions ...Decision) error {
	select {
	case <-c.done:
		return fmt.Errorf("agent: thread %q: %w", c.thread.id, ErrNoRun)
	default:
	}
	if err := c.thread.decide(decisions, c.agent.cfg.Now(), c.agent.cfg.NewID); err != nil {
		return fmt.Errorf("agent: thread %q: %w", c.thread.id, err)
	}
	return nil
}

// Send adds messages to the conversation of the run, before its next inference.
// They keep role and visibility. It waits while the inbox is full. Without messages
// it does nothing.
func (c *Control) Send(ctx context.Context, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	return c.agent.Deliver(ctx, c.thread.id, abi.Notice{Kind: abi.NoticeMessages, Messages: messages})
}
