package mailbox

import (
	"context"
	"fmt"
	"time"
)

// Start begins to carry out what is queued, and what is left from processes that
// ended. It fails, and starts nothing, when the store cannot be read. Starting again
// does nothing.
func (m *Mailbox) Start(ctx context.Context) error {
	if _, _, err := m.cfg.Store.Due(ctx, DueQuery{By: m.queue.now(), Limit: 1}); err != nil {
		return fmt.Errorf("mailbox: start: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started || m.closing {
		return nil
	}
	m.started = true
	m.loop() //nolint:contextcheck // the loops outlive whoever starts them
	return nil
}

// loop starts the loops. The caller holds the lock.
func (m *Mailbox) loop() {
	ctx, stop := context.WithCancel(m.base)
	m.stop = stop
	m.loops.Go(func() { m.schedule(ctx) })
	if m.cfg.GCInterval > 0 {
		m.loops.Go(func() { m.collect(ctx) })
	}
}

func (m *Mailbox) isStarted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started && !m.closing
}

// Close takes nothing new and waits until what is being carried out has ended. When ctx is
// done before, the rest is asked to end, and given back for other processes. It returns when
// all has ended. Closing again waits again.
func (m *Mailbox) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	stop := m.stop
	m.mu.Unlock()
	if stop != nil {
		stop()
	}
	m.loops.Wait()
	done := make(chan struct{})
	go func() {
		m.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		m.finish(ErrShutdown)
		<-done
	}
	m.finish(ErrShutdown)
	return nil
}

// wake asks the loop to look now.
func (m *Mailbox) wake() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// schedule carries out what is due, whenever it is.
func (m *Mailbox) schedule(ctx context.Context) {
	for {
		next, err := m.round(ctx)
		if err != nil && ctx.Err() == nil {
			m.cfg.Logger.WarnContext(ctx, "mailbox_round_failed", "error", err)
		}
		pause := m.cfg.Poll
		if !next.IsZero() {
			pause = min(pause, max(next.Sub(m.cfg.Now()), 0))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-m.poke:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// round looks once at all that is due and says when to look again.
func (m *Mailbox) round(ctx context.Context) (time.Time, error) {
	free, skip := m.room()
	if free == 0 {
		return time.Time{}, nil // whoever ends wakes the loop
	}
	due, next, err := m.cfg.Store.Due(ctx, DueQuery{By: m.queue.now(), Skip: skip, Limit: free})
	if err != nil {
		return time.Time{}, fmt.Errorf("mailbox: what is due: %w", err)
	}
	moved := false
	for i := range due {
		did, err := m.look(ctx, due[i])
		if err != nil {
			return time.Time{}, err
		}
		moved = moved || did
	}
	if moved && len(due) == free {
		m.wake()
	}
	return next, nil
}

// room is how many workers are free, and which tenants have none.
func (m *Mailbox) room() (free int, skip []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.TenantWorkers > 0 {
		for tenant, n := range m.tenants {
			if n >= m.cfg.TenantWorkers {
				skip = append(skip, tenant)
			}
		}
	}
	return max(m.cfg.Workers-m.claims, 0), skip
}

// look does what a thread is due for, and says whether it did something.
func (m *Mailbox) look(ctx context.Context, h Head) (bool, error) {
	if h.Claim != nil {
		k, ok, err := m.queue.Expire(ctx, h.Thread)
		if ok {
			m.settled(k.Dispatch)
		}
		return ok, err
	}
	if run, err := m.queue.Lapse(ctx, h.Thread); run != "" || err != nil {
		return true, err
	}
	if err := m.reserve(h.Tenant, true); err != nil {
		return false, nil //nolint:nilerr // the others may have room
	}
	taken, ok, err := m.queue.Claim(ctx, h.Thread, m.claimRequest())
	if err != nil || !ok {
		m.release(h.Tenant)
		return false, err
	}
	m.spawn(taken) //nolint:contextcheck // see spawn
	return true, nil
}

// collect drops old dispatches.
func (m *Mailbox) collect(ctx context.Context) {
	for wait(ctx, m.cfg.GCInterval) {
		if err := m.GC(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Logger.WarnContext(ctx, "mailbox_gc_failed", "error", err)
		}
	}
}

// GC drops dispatches that are old enough.
func (m *Mailbox) GC(ctx context.Context) error {
	const batch = 1000
	for _, q := range []PurgeQuery{
		{Statuses: []Status{Acked, Cancelled, Superseded}, Before: m.queue.now().Add(-m.cfg.TTL), Limit: batch},
		{Statuses: []Status{DeadLetter}, Before: m.queue.now().Add(-m.cfg.DeadTTL), Limit: batch},
	} {
		for n := batch; n == batch; {
			var err error
			if n, err = m.cfg.Store.Purge(ctx, q); err != nil {
				return fmt.Errorf("mailbox: gc: %w", err)
			}
		}
	}
	return nil
}
