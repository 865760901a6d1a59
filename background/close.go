package background

import (
	"context"
	"fmt"
	"time"
)

// closing is how long owners may take, beyond the grace period, to accept the ends of
// the tasks that Close cancels.
const closing = time.Second

// Close refuses new tasks, cancels all, and waits until each has ended, which
// takes at most the grace period and a second more, or until ctx is done. Bodies have
// the grace period to return; what owners and the Ledger have not accepted a second
// later is lost, and counted in [Stats]. It reports bodies that had to be abandoned.
// Closing again waits again.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.once.Do(func() { time.AfterFunc(m.cfg.Grace+closing, m.giveUp) })
	m.cancelWhere(func(*Task) bool { return true })
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
	for _, t := range m.tasks {
		t.end()
	}
}
