package mailbox

import (
	"context"
	"slices"
	"sync"
	"time"
)

// PauseThread pauses a thread: what it executes is asked to stop at its next checkpoint and is given back, without costing an attempt, and
// nothing of it is claimed until [Mailbox.ResumeThread]. What is submitted in the background is queued. Pausing again does nothing. A
// thread without a dispatch is [ErrNotFound].
func (m *Mailbox) PauseThread(ctx context.Context, thread string) (Thread, error) {
	s, err := m.queue.Pause(ctx, thread, true)
	if err == nil && s.Claim != nil {
		m.ask(s.Dispatch, ErrPaused)
	}
	return s.Thread, err
}

// ResumeThread ends the pause of a thread. Its run continues where it was.
func (m *Mailbox) ResumeThread(ctx context.Context, thread string) (Thread, error) {
	s, err := m.queue.Pause(ctx, thread, false)
	m.wake()
	return s.Thread, err
}

// Pause lets no process claim threads of a tenant, or of any tenant if it is empty, until [Mailbox.Resume]. Executions under way continue
// to their end. Other processes follow within Config.Poll. Foreground requests are [ErrPaused], others are queued.
func (m *Mailbox) Pause(ctx context.Context, tenant string) error {
	return m.setPause(ctx, tenant, true)
}

// Resume ends what [Mailbox.Pause] began.
func (m *Mailbox) Resume(ctx context.Context, tenant string) error {
	return m.setPause(ctx, tenant, false)
}

// Pauses lists the tenants that are paused; an empty one is for all. It may lag by Config.Poll.
func (m *Mailbox) Pauses(ctx context.Context) ([]string, error) { return m.queue.Pauses(ctx) }

func (m *Mailbox) setPause(ctx context.Context, tenant string, pause bool) error {
	if err := m.queue.PauseTenant(ctx, tenant, pause); err != nil {
		return err
	}
	m.pauses.expire()
	m.wake()
	return nil
}

// pauses are the tenants that are paused, as of the latest read.
type pauses struct {
	mu      sync.Mutex
	tenants []string
	read    time.Time
}

// has reports whether a tenant is paused, as far as this process knows.
func (p *pauses) has(tenant string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.tenants, "") || slices.Contains(p.tenants, tenant)
}

func (p *pauses) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = time.Time{}
}

// paused returns the tenants that are paused, and whether all are. It reads them once in a Config.Poll.
func (m *Mailbox) paused(ctx context.Context) (tenants []string, all bool, err error) {
	p := &m.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.read) >= m.cfg.Poll {
		if p.tenants, err = m.queue.Pauses(ctx); err != nil {
			return nil, false, err
		}
		p.read = now
	}
	return p.tenants, slices.Contains(p.tenants, ""), nil
}
