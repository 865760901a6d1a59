package mailbox

import (
	"context"
	"fmt"
	"sync"
)

// life is the time between a start and a stop.
type life struct {
	stop  context.CancelFunc
	loops sync.WaitGroup
	// done is closed when all loops have ended, also those of lives before.
	done chan struct{}
}

// Start reads what is left from processes that ended, see [Mailbox.Recover], and begins to execute
// what is queued. It fails, and starts nothing, when it cannot read that. Threads that fail by themselves are logged, and tried again
// later. Starting again
// does nothing; a Start while another one is under way waits for it. When it has returned, ctx has no
// meaning for the Mailbox any more.
func (m *Mailbox) Start(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return fmt.Errorf("mailbox: start: %w", err)
	}
	defer m.exit()
	if m.Running() {
		return nil
	}
	if err := m.recovered(ctx); err != nil {
		return fmt.Errorf("mailbox: start: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return fmt.Errorf("mailbox: start: %w", ErrShutdown)
	}
	m.begin() //nolint:contextcheck // the loops outlive the call that starts them
	return nil
}

// recovered reads what is left, as often as Config.Retry has it. Threads that fail do not keep it from starting.
func (m *Mailbox) recovered(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		n, failed, err := m.recoverAll(ctx)
		if err == nil {
			m.cfg.Logger.DebugContext(ctx, "mailbox_recovered", "dispatches", n, "failed", len(failed))
			return nil
		}
		if attempt >= m.cfg.Retry.Starts || !wait(ctx, m.cfg.Retry.StartDelay) {
			return err
		}
		m.cfg.Logger.WarnContext(ctx, "mailbox_recovery_failed", "attempt", attempt, "error", err)
	}
}

// begin starts the loops. The caller holds the lock.
func (m *Mailbox) begin() {
	ctx, stop := context.WithCancel(m.base)
	l, former := &life{stop: stop, done: make(chan struct{})}, m.latest
	m.life, m.latest = l, l
	l.loops.Go(func() { m.schedule(ctx) })
	if m.cfg.Retention.Interval > 0 {
		l.loops.Go(func() { m.collect(ctx) })
	}
	l.loops.Go(func() { m.watch(ctx) })
	go func() {
		l.loops.Wait()
		if former != nil {
			<-former.done
		}
		close(l.done)
	}()
}

// Running reports whether the Mailbox executes what is queued: between Start and Stop.
func (m *Mailbox) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life != nil && !m.closing
}

// wasStarted reports whether the Mailbox executes what is queued, or did: one that was never started has nothing that continues a run later.
func (m *Mailbox) wasStarted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest != nil
}

// Stop takes nothing from the queue any more, and waits until the loops and Config.Retention.Maintain have ended. What
// is being executed continues. The Mailbox can be started again. When ctx is done before, Stop
// returns its error, and has stopped all the same.
func (m *Mailbox) Stop(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return fmt.Errorf("mailbox: stop: %w", err)
	}
	defer m.exit()
	m.mu.Lock()
	l := m.life
	m.life = nil
	m.mu.Unlock()
	if l == nil {
		return nil
	}
	l.stop()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mailbox: stop: %w", context.Cause(ctx))
	}
}

// enter waits until no other start or stop is under way.
func (m *Mailbox) enter(ctx context.Context) error {
	select {
	case m.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Mailbox) exit() { <-m.changing }
