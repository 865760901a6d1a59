package background

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Causes of a body's cancelled context.
var (
	errCancelled = errors.New("background: task cancelled")
	errTimeout   = errors.New("background: task timed out")
)

// Bounds of one attempt to deliver a terminal notice. Readers of the thread's
// status wait that long at most.
const (
	firstAttempt = 20 * time.Millisecond
	lastAttempt  = 5 * time.Second
)

// outcome is how a task ends.
type outcome struct {
	status Status
	result any
	err    string
}

// run takes a task from its place in the queue to its end.
func (m *Manager) run(ctx context.Context, t *Task) {
	defer m.wg.Done()
	defer t.end()
	defer t.cancel(nil)
	if !m.takeSlot(ctx, t) {
		m.commit(ctx, t, outcome{status: Cancelled})
		return
	}
	o := m.runBody(ctx, t)
	<-m.slots
	m.commit(ctx, t, o)
}

// takeSlot waits for a place and marks the task as running. It returns false
// when the task was cancelled first.
func (m *Manager) takeSlot(ctx context.Context, t *Task) bool {
	m.mu.Lock()
	running := t.info.Status == Running
	m.mu.Unlock()
	if running {
		return true // register took the place
	}
	select {
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	m.mu.Lock()
	t.info.Status = Running
	m.mu.Unlock()
	return true
}

// runBody runs the body until it returns or is abandoned.
func (m *Manager) runBody(ctx context.Context, t *Task) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, t.spec.Timeout, errTimeout)
	defer cancel()
	done := make(chan outcome, 1)
	go m.call(ctx, t, done)
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	grace := time.NewTimer(m.cfg.Grace)
	defer grace.Stop()
	select {
	case o := <-done:
		return o
	case <-grace.C:
	}
	m.mu.Lock()
	m.abandoned++
	m.mu.Unlock()
	m.cfg.Logger.ErrorContext(ctx, "task body ignored cancellation and was abandoned",
		"task_id", t.info.ID, "task_type", t.spec.Type, "grace", m.cfg.Grace)
	return outcome{status: Failed, err: fmt.Sprintf("abandoned: the body went on for %s after: %s", m.cfg.Grace, reason(ctx, t))}
}

// call runs the body and reports exactly one outcome, also when it panics or
// ends its goroutine.
func (m *Manager) call(ctx context.Context, t *Task, done chan<- outcome) {
	o := outcome{status: Failed, err: "the body ended its goroutine without returning"}
	defer func() {
		if p := recover(); p != nil {
			o = outcome{status: Failed, err: fmt.Sprintf("panic: %v", p)}
			m.cfg.Logger.ErrorContext(ctx, "task body panicked",
				"task_id", t.info.ID, "task_type", t.spec.Type, "stack", string(debug.Stack()))
		}
		done <- o
	}()
	result, err := t.spec.Body(ctx, t)
	switch {
	case err == nil:
		o = outcome{status: Completed, result: plain(result)}
	case errors.Is(context.Cause(ctx), errTimeout):
		o = outcome{status: Failed, err: reason(ctx, t)}
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errCancelled)):
		o = outcome{status: Cancelled}
	default:
		o = outcome{status: Failed, err: err.Error()}
	}
}

// reason says in words why a body's context ended.
func reason(ctx context.Context, t *Task) string {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Sprintf("timed out after %s", t.spec.Timeout)
	}
	return "cancelled"
}

// commit delivers the terminal notice and sets the status in one step. While the
// owner has no room it lets readers look in between attempts; it gives up when
// Deliver refuses for good, or when the Manager has been closing for the grace
// period.
func (m *Manager) commit(ctx context.Context, t *Task, o outcome) {
	t.end() // an Emit that still waits gives up
	t.emit.lock()
	t.over = true
	t.emit.unlock()

	ctx = context.WithoutCancel(ctx)
	var giveUp <-chan time.Time
	last := false
	for wait := firstAttempt; !m.attempt(ctx, t, o, wait, last); wait = min(2*wait, lastAttempt) {
		select {
		case <-m.stop:
			if giveUp == nil {
				giveUp = time.After(m.cfg.Grace)
			}
		default:
		}
		select {
		case <-giveUp:
			last = true
		default:
		}
	}
}

// attempt tries once to deliver and, when that is decided, makes the end
// visible. It is not decided while the owner has no room, unless it is the last
// attempt.
func (m *Manager) attempt(ctx context.Context, t *Task, o outcome, wait time.Duration, last bool) bool {
	g := m.gate(t.spec.Thread)
	g.lock()
	defer g.unlock()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := m.cfg.Deliver(ctx, t.spec.Thread, terminal(t, o))
	if err != nil && ctx.Err() != nil && !last {
		return false
	}
	if err != nil {
		m.cfg.Logger.ErrorContext(ctx, "terminal notice of a task was lost",
			"task_id", t.info.ID, "task_type", t.spec.Type, "status", o.status, "error", err)
	}
	m.finish(t, o)
	return true
}

// finish makes the end visible and forgets the oldest ended tasks. The caller
// holds the thread's gate.
func (m *Manager) finish(t *Task, o outcome) {
	now := m.cfg.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	t.info.Status, t.info.Result, t.info.Error, t.info.EndedAt = o.status, o.result, o.err, now
	if t.spec.Name != "" {
		delete(m.names, name{t.spec.Thread, t.spec.Name})
	}
	m.live[t.spec.Thread]--
	if m.live[t.spec.Thread] == 0 {
		delete(m.live, t.spec.Thread)
	}
	m.ended = append(m.ended, t.info.ID)
	for len(m.ended) > m.cfg.Keep {
		delete(m.tasks, m.ended[0])
		m.ended = m.ended[1:]
	}
	close(m.changed)
	m.changed = make(chan struct{})
}
