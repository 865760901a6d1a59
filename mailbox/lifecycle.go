package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// life is the time between a start and a stop.
type life struct {
	stop  context.CancelFunc
	loops sync.WaitGroup
	// done is closed when all loops have ended, also those of lives before.
	done chan struct{}
}

// Start looks at what is left from processes that ended, see [Mailbox.Recover], and begins to carry out
// what is queued. It fails, and starts nothing, when it cannot look. Threads that fail by themselves are logged, and tried again
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
	m.begin() //nolint:contextcheck // the loops outlive whoever starts them
	return nil
}

// recovered looks at what is left, as often as the config says. Threads that fail do not keep it from starting.
func (m *Mailbox) recovered(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		n, failed, err := m.recoverAll(ctx)
		if err == nil {
			m.cfg.Logger.DebugContext(ctx, "mailbox_recovered", "dispatches", n, "failed", len(failed))
			return nil
		}
		if attempt >= m.cfg.StartAttempts || !wait(ctx, m.cfg.StartRetry) {
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
	if m.cfg.GCInterval > 0 {
		l.loops.Go(func() { m.collect(ctx) })
	}
	if signals, ok := m.cfg.Store.(Signals); ok {
		l.loops.Go(func() { m.hear(ctx, signals) })
	}
	if c, ok := m.cfg.Store.(changes); ok {
		l.loops.Go(func() { m.watch(ctx, c) })
	}
	go func() {
		l.loops.Wait()
		if former != nil {
			<-former.done
		}
		close(l.done)
	}()
}

// Running says whether the Mailbox carries out what is queued: between Start and Stop.
func (m *Mailbox) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life != nil && !m.closing
}

// Stop takes nothing from the queue any more, and waits until the loops and Config.Maintain have ended. What
// is being carried out goes on. The Mailbox can be started again. When ctx is done before, Stop
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

// Close takes nothing new and waits until what is being carried out has ended. When ctx is
// done before, the rest is asked to end, and given back for other processes. What goes on all the same for
// Config.CloseWait is abandoned: Close returns an error that names it, its lease is renewed no more, so that another process can go
// on when it is over, and what it still writes is refused then. Closing again waits again.
func (m *Mailbox) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	l := m.latest
	m.mu.Unlock()
	loops := make(chan struct{})
	if l != nil {
		l.stop()
		loops = l.done
	} else {
		close(loops)
	}
	done := make(chan struct{})
	go func() {
		<-loops
		m.work.Wait()
		close(done)
	}()
	err := m.end(ctx, done, loops)
	m.finish(ErrShutdown)
	m.endStreams()
	if m.pump != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.LiveWait)
		defer cancel()
		m.pump.close(ctx)
	}
	return err
}

// end waits until all has ended, asks for it when ctx is done, and then gives up.
func (m *Mailbox) end(ctx context.Context, done, loops <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	m.finish(ErrShutdown)
	timer := time.NewTimer(m.cfg.CloseWait)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
	}
	select {
	case <-loops:
		return m.abandon(ctx)
	default:
		return errors.Join(m.abandon(ctx),
			fmt.Errorf("mailbox: close: a look at the store, or Config.Maintain, went on for %v after it was asked to end; let it heed its context", m.cfg.CloseWait))
	}
}

// abandon leaves the executions that go on to themselves, and tells which.
func (m *Mailbox) abandon(ctx context.Context) error {
	m.mu.Lock()
	var left, untold []*execution
	for _, x := range m.running {
		left = append(left, x)
		if !x.abandoned {
			untold = append(untold, x)
		}
		x.abandoned = true
	}
	m.mu.Unlock()
	var errs []error
	for _, x := range left {
		errs = append(errs, fmt.Errorf("mailbox: close: dispatch %.80q of thread %.80q went on for %v after it was asked to end, and was abandoned; let its runtime heed its context",
			x.hold.Dispatch, x.hold.Thread, m.cfg.CloseWait))
	}
	for _, x := range untold {
		_, end := m.queue.begin(ctx, Operation{Name: OpAbandon, Thread: x.hold.Thread, Dispatch: x.hold.Dispatch})
		end(false, ErrShutdown)
		m.cfg.Logger.ErrorContext(ctx, "mailbox_execution_abandoned", "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "grace", m.cfg.CloseWait)
		x.events.finish(EventMoved, nil)
		m.forgetStream(x.hold.Dispatch, x.events)
	}
	return errors.Join(errs...)
}

// collect drops what is old.
func (m *Mailbox) collect(ctx context.Context) {
	for wait(ctx, m.cfg.GCInterval) {
		m.wakeLeft(ctx)
		if err := errors.Join(m.GC(ctx), m.maintain(ctx)); err != nil && ctx.Err() == nil {
			m.cfg.Logger.WarnContext(ctx, "mailbox_gc_failed", "error", err)
		}
	}
}

// maintain calls the embedder's maintenance; a panic is an error.
func (m *Mailbox) maintain(ctx context.Context) (err error) {
	if m.cfg.Maintain == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			m.cfg.Logger.ErrorContext(ctx, "mailbox_maintenance_panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("mailbox: maintenance panicked: %v", p)
		}
	}()
	return m.cfg.Maintain(ctx)
}
