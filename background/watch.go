package background

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// watch ends a task whose body does not end with its context. It is a timer and no goroutine, of
// which there are as many as tasks.
type watch struct {
	mu      sync.Mutex
	stop    func() bool // forgets the context
	grace   *time.Timer // runs since the context ended
	decided bool        // who ends the task: the body, or the timer
}

// watch begins to.
func (m *Manager) watch(ctx context.Context, t *Task) *watch {
	w := &watch{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.decided {
			w.grace = time.AfterFunc(m.cfg.Grace, func() { m.abandon(ctx, t, w) })
		}
	})
	return w
}

// over stops the watch and reports whether it is the caller's to end the task.
func (w *watch) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
	if w.grace != nil {
		w.grace.Stop()
	}
	first := !w.decided
	w.decided = true
	return first
}

// abandon ends a task whose body still runs.
func (m *Manager) abandon(ctx context.Context, t *Task, w *watch) {
	if !w.over() {
		return
	}
	m.count(func(s *Stats) { s.Abandoned++ })
	m.cfg.Logger.ErrorContext(ctx, "task body ignored cancellation and was abandoned",
		"task_id", t.info.ID, "task_type", t.spec.Type, "grace", m.cfg.Grace)
	why := fmt.Sprintf("abandoned: the body went on for %s after: %s", m.cfg.Grace, reason(ctx, t))
	m.conclude(t, outcome{status: Failed, err: why}) //nolint:contextcheck // that of the body is over
}
