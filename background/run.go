package background

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Causes of a body's cancelled context, and what a callback that panics gives.
var (
	errCancelled = errors.New("background: task cancelled")
	errTimeout   = errors.New("background: task timed out")
	errPanicked  = errors.New("background: what takes the notices panicked")
)

// outcome is how a task ends.
type outcome struct {
	status Status
	result any
	err    string
}

// run takes a task from its place in the queue to its end, on the goroutine of its body.
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
	m.call(ctx, t, m.watch(ctx, t))
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

// call runs the body and ends the task with its outcome, also when it panics or ends its
// goroutine, unless that came too late.
func (m *Manager) call(ctx context.Context, t *Task, w *watch) {
	o := outcome{status: Failed, err: "the body ended its goroutine without returning"}
	defer func() {
		if p := recover(); p != nil {
			o = outcome{status: Failed, err: fmt.Sprintf("panic: %v", p)}
			m.cfg.Logger.ErrorContext(ctx, "task body panicked",
				"task_id", t.info.ID, "task_type", t.spec.Type, "stack", string(debug.Stack()))
		}
		if w.over() {
			m.conclude(t, o) //nolint:contextcheck // that of the body is over
		}
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
