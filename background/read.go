package background

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// Stats counts what a Manager does.
type Stats struct {
	// Running and Queued tasks, and ended ones that are kept.
	Running, Queued, Ended int
	// Abandoned bodies ignored their cancellation; their goroutines may still run.
	Abandoned int
	// RefusedEvents were emitted and not accepted; Emit returned false.
	RefusedEvents int
	// LostNotices are notifications of messages that came back which the ledger did not take until the Manager was closed.
	LostNotices int
	// CommitFailures is how often the ledger did not take an end, by operation:
	// "task_completion", "sub_agent_completion" and "restore_task_metadata". It was
	// tried again.
	CommitFailures map[string]int
	// Unsaved ends were seen in this process but not kept, because it closed. Their
	// tasks are orphans for the next one.
	Unsaved int
	// Undelivered messages were sent to a sub-agent that ended before it read them.
	// Its owner got them back, but for what LostNotices counts.
	Undelivered int
}

// Stats returns the counts at this moment.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.CommitFailures = maps.Clone(m.stats.CommitFailures)
	for _, t := range m.tasks {
		switch {
		case t.info.Status.Terminal():
			s.Ended++
		case t.info.Status == Queued:
			s.Queued++
		default:
			s.Running++
		}
	}
	return s
}

func (m *Manager) count(add func(*Stats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	add(&m.stats)
}

// Get returns what is known of a task, ended ones included while they are kept.
func (m *Manager) Get(id string) (Info, bool) {
	m.mu.Lock()
	t := m.tasks[id]
	m.mu.Unlock()
	if t == nil {
		return Info{}, false
	}
	defer m.read(t.spec.Thread)()
	return t.info, true
}

// List returns the tasks of a thread, oldest first.
func (m *Manager) List(thread string) []Info {
	defer m.read(thread)()
	var own []*Task
	for _, t := range m.tasks {
		if t.spec.Thread == thread {
			own = append(own, t)
		}
	}
	slices.SortFunc(own, func(a, b *Task) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]Info, len(own))
	for i, t := range own {
		out[i] = t.info
	}
	return out
}

// HasBlocking reports whether a blocking task of the thread has not ended. When
// it returns false, the notifications of all blocking tasks are queued.
func (m *Manager) HasBlocking(thread string) bool {
	defer m.read(thread)()
	for _, t := range m.tasks {
		if t.spec.Thread == thread && t.spec.Class == Blocking && !t.info.Status.Terminal() {
			return true
		}
	}
	return false
}

// Wait returns when no task of the thread runs or waits to run, whatever its
// class, or when ctx is done. A body must not wait for its own thread.
func (m *Manager) Wait(ctx context.Context, thread string) error {
	for {
		// No gate is needed: the end of a task that has ended was queued.
		m.mu.Lock()
		n, changed := 0, m.changed
		if th := m.threads[thread]; th != nil {
			n = th.live
		}
		m.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("background: wait for %d tasks of thread %s: %w", n, thread, context.Cause(ctx))
		}
	}
}

// WaitTask returns what is known of a task when it has ended or when ctx is done,
// the latter with an error. [ErrNotFound] means that it is not known. A body that
// waits, with its own ctx, leaves its place to others meanwhile, so that parents
// that wait for children do not starve them.
func (m *Manager) WaitTask(ctx context.Context, id string) (Info, error) {
	resume := m.yield(ctx, id)
	defer resume()
	for {
		info, ok, changed := m.standing(id)
		switch {
		case !ok:
			return Info{}, fmt.Errorf("background: task %.80q: %w", id, ErrNotFound)
		case info.Status.Terminal():
			return info, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if info, ok = m.Get(id); ok && info.Status.Terminal() {
				return info, nil
			}
			return info, fmt.Errorf("background: wait for task %s: %w", id, context.Cause(ctx))
		}
	}
}

// standing returns what is known of a task, and what is closed when that may change.
// It does not lock the thread: the owner may have received an end that is not visible yet.
func (m *Manager) standing(id string) (Info, bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tasks[id]; t != nil {
		return t.info, true, m.changed
	}
	return Info{}, false, m.changed
}

// yield gives up the place of the task whose body waits for another one, and
// returns how to get it back, at once: for a moment there may be one body more than places.
func (m *Manager) yield(ctx context.Context, id string) (resume func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tasks[LineageOf(ctx).TaskID]
	if t == nil || t.info.ID == id || !t.placed && t.waiting == 0 {
		return func() {}
	}
	t.waiting++
	if t.waiting == 1 {
		m.places.leave(t)
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		t.waiting--
		if t.waiting == 0 && !t.gone {
			m.places.hold(t)
		}
	}
}
