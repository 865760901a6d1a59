package background

import (
	"context"
	"fmt"
	"time"
)

// Cancel asks a task to end and reports whether there was one to ask. It does
// not wait.
func (m *Manager) Cancel(id string) bool {
	return m.cancelWhere(func(i *Info) bool { return i.ID == id }) > 0
}

// CancelTree asks a task and all that come from it, at any depth, to end. It
// returns how many there were to ask; 0 if the task is not known.
func (m *Manager) CancelTree(id string) int {
	return m.cancelFrom(func(i *Info) bool { return i.ID == id })
}

// CancelAll asks every task of a thread to end and returns how many there were.
// Notifications that are not read yet stay.
func (m *Manager) CancelAll(thread string) int {
	return m.cancelWhere(func(i *Info) bool { return i.Thread == thread })
}

// CancelRun asks what was spawned by a run, and all that comes from that, to end.
// It is for a run that was cancelled itself. Services and housekeeping continue.
func (m *Manager) CancelRun(runID string) int {
	return m.cancelFrom(func(i *Info) bool {
		return runID != "" && i.Parent.RunID == runID && i.Parent.TaskID == "" && !i.Status.Terminal() && i.Class.group() == Blocking
	})
}

// cancelFrom asks the tasks that match, and all that come from them, to end. Lineages that
// form a ring, as a restored one may, end it.
func (m *Manager) cancelFrom(match func(*Info) bool) int {
	m.mu.Lock()
	in, children := map[string]bool{}, map[string][]*Task{}
	for _, t := range m.tasks {
		children[t.info.Parent.TaskID] = append(children[t.info.Parent.TaskID], t)
	}
	for next := m.find(match); len(next) > 0; next = next[1:] {
		if id := next[0].info.ID; !in[id] {
			in[id] = true
			next = append(next, children[id]...)
		}
	}
	m.mu.Unlock()
	return m.cancelWhere(func(i *Info) bool { return in[i.ID] })
}

func (m *Manager) cancelWhere(match func(*Info) bool) int {
	m.mu.Lock()
	hit := m.find(func(i *Info) bool { return !i.Status.Terminal() && match(i) })
	m.mu.Unlock()
	for _, t := range hit {
		t.cancel(errCancelled)
	}
	return len(hit)
}

// closeTime is how long owners may take, beyond the grace period, to accept the ends of
// the tasks that Close cancels.
const closeTime = time.Second

// Close refuses new tasks, cancels all, and waits until each has ended, which
// takes at most the grace period and a second more, or until ctx is done. Bodies have
// the grace period to return; what owners and the Ledger have not accepted a second
// later is lost, and counted in [Stats]. It reports bodies that had to be abandoned.
// Closing again waits again.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.once.Do(func() { time.AfterFunc(m.cfg.Grace+closeTime, m.giveUp) })
	m.cancelWhere(func(*Info) bool { return true })
	done := make(chan struct{})
	go func() {
		m.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("background: close: %w", context.Cause(ctx))
	}
	if n := m.Stats().Abandoned; n > 0 {
		return fmt.Errorf("background: close: %d task bodies ignored cancellation and were abandoned", n)
	}
	return nil
}

// giveUp ends all that still waits for an owner.
func (m *Manager) giveUp() {
	m.expire()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.find(func(i *Info) bool { return !i.Status.Terminal() }) {
		t.end()
	}
}
