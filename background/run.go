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

// outcome is how a task ends.
type outcome struct {
	status Status
	result any
	err    string
}

// run takes a task from its place in the queue to its end.
func (m *Manager) run(t *Task) {
	if !m.takeTurn(t) {
		m.conclude(t, outcome{status: Cancelled})
		return
	}
	m.mu.Lock()
	info := t.info
	m.mu.Unlock()
	m.observe(t.body, EventStarted, info)
	ctx, cancel := context.WithTimeoutCause(t.body, t.spec.Timeout, errTimeout)
	defer cancel()
	m.conclude(t, m.supervise(ctx, t))
}

// supervise runs the body and returns its outcome. A body that still runs when its context has ended and the grace period
// is over is abandoned.
func (m *Manager) supervise(ctx context.Context, t *Task) outcome {
	ended := make(chan outcome, 1)
	go m.call(ctx, t, ended)
	select {
	case o := <-ended:
		return o
	case <-ctx.Done():
	}
	grace := time.NewTimer(m.cfg.Grace)
	defer grace.Stop()
	select {
	case o := <-ended:
		return o
	case <-grace.C:
	}
	m.count(func(s *Stats) { s.Abandoned++ })
	m.cfg.Logger.ErrorContext(ctx, "task body ignored cancellation and was abandoned",
		"task_id", t.info.ID, "task_type", t.spec.Type, "grace", m.cfg.Grace)
	return outcome{status: Failed, err: fmt.Sprintf("abandoned: the body continued for %s after: %s", m.cfg.Grace, reason(ctx, t))}
}

// conclude ends a task. It is called once for each.
func (m *Manager) conclude(t *Task, o outcome) {
	defer m.wg.Done()
	defer t.end()
	defer t.cancel(nil)
	o.err = m.cutError(o.err)
	o.result = m.fit(t.life, t, o.result, true)
	m.mu.Lock()
	t.gone = true
	m.places.leave(t)
	m.mu.Unlock()
	op := "task_completion"
	if t.box != nil {
		op = "sub_agent_completion"
	}
	m.commit(t, o, op, m.unread(t)...)
}

// takeTurn waits for a place. It returns false when the task was cancelled first.
func (m *Manager) takeTurn(t *Task) bool {
	select {
	case <-t.turn:
		return true
	default:
	}
	select {
	case <-t.turn:
		return true
	case <-t.body.Done():
		return false
	}
}

// call runs the body and sends its outcome, also when it panics or ends its goroutine.
func (m *Manager) call(ctx context.Context, t *Task, ended chan<- outcome) {
	o := outcome{status: Failed, err: "the body ended its goroutine without returning"}
	defer func() {
		if p := recover(); p != nil {
			o = outcome{status: Failed, err: fmt.Sprintf("panic: %v", p)}
			m.cfg.Logger.ErrorContext(ctx, "task body panicked",
				"task_id", t.info.ID, "task_type", t.spec.Type, "stack", string(debug.Stack()))
		}
		ended <- o
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

// reason is why a body's context ended.
func reason(ctx context.Context, t *Task) string {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Sprintf("timed out after %s", t.spec.Timeout)
	}
	return "cancelled"
}
