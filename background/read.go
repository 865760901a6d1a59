package background

import (
	"context"
	"fmt"
	"maps"
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

// refused counts an attempt that the ledger did not take, unless it had no room.
func (s *Stats) refused(op string, full, last, end bool) {
	if !full {
		if s.CommitFailures == nil {
			s.CommitFailures = map[string]int{}
		}
		s.CommitFailures[op]++
	}
	switch {
	case last && end:
		s.Unsaved++
	case last:
		s.LostNotices++
	}
}

// Get returns what is known of a task, ended ones included while they are kept.
func (m *Manager) Get(id string) (Info, bool) {
	m.mu.Lock()
	t := m.tasks[id]
	m.mu.Unlock()
	if t == nil {
		return Info{}, false
	}
	defer m.read(t.info.Thread)()
	return t.info, true
}

// List returns the tasks of a thread, oldest first.
func (m *Manager) List(thread string) (out []Info) {
	defer m.read(thread)()
	for _, t := range m.find(func(i *Info) bool { return i.Thread == thread }) {
		out = append(out, t.info)
	}
	return out
}

// HasBlocking reports whether a blocking task of the thread has not ended. When
// it returns false, the notifications of all blocking tasks are queued.
func (m *Manager) HasBlocking(thread string) bool {
	defer m.read(thread)()
	return len(m.find(func(i *Info) bool { return i.Thread == thread && i.Class == Blocking && !i.Status.Terminal() })) > 0
}

// Wait returns when no task of the thread runs or waits to run, whatever its
// class, or when ctx is done. A body must not wait for its own thread.
func (m *Manager) Wait(ctx context.Context, thread string) error {
	for {
		// No gate is needed: the end of a task that has ended was queued.
		m.mu.Lock()
		live := m.find(func(i *Info) bool { return i.Thread == thread && !i.Status.Terminal() })
		m.mu.Unlock()
		if len(live) == 0 {
			return nil
		}
		select {
		case <-live[0].done:
		case <-ctx.Done():
			return fmt.Errorf("background: wait for %d tasks of thread %s: %w", len(live), thread, context.Cause(ctx))
		}
	}
}

// WaitTask returns what is known of a task when it has ended or when ctx is done,
// the latter with an error. [ErrNotFound] means that it is not known, or was not started. A body that
// waits, with its own ctx, leaves its place to others meanwhile, so that parents
// that wait for children do not starve them.
func (m *Manager) WaitTask(ctx context.Context, id string) (Info, error) {
	defer m.yield(ctx, id)()
	m.mu.Lock()
	t := m.tasks[id]
	m.mu.Unlock()
	if t == nil {
		return Info{}, fmt.Errorf("background: task %.80q: %w", id, ErrNotFound)
	}
	select {
	case <-t.done: // no gate is needed: the owner may have received an end that is not visible yet
		info := m.info(t)
		if !info.Status.Terminal() { // its record could not be kept: it was never there
			return Info{}, fmt.Errorf("background: task %s was not started: %w", id, ErrNotFound)
		}
		return info, nil
	case <-ctx.Done():
	}
	unlock := m.read(t.info.Thread)
	info := t.info
	unlock()
	if !info.Status.Terminal() {
		return info, fmt.Errorf("background: wait for task %s: %w", id, context.Cause(ctx))
	}
	return info, nil
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
		if t.waiting == 0 && t.life.Err() == nil {
			m.places.hold(t)
		}
	}
}
