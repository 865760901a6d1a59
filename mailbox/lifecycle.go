package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// lifecycle is between which moments a Mailbox executes what. The Mailbox's lock guards life, started, polls, closing and closed.
type lifecycle struct {
	// life is the latest, nil before the first start; started is set between a start and a stop.
	life    *life
	started bool
	// polls is set once the Mailbox executes what is queued: one that never did has nothing that continues a run later.
	polls bool
	// closing is set from the beginning of the first Close on, closed from its end on.
	closing, closed bool

	// changing has an entry while a start or a stop is under way. work are the executions.
	changing chan struct{}
	work     sync.WaitGroup
	base     context.Context //nolint:containedctx // executions outlive the call that asked for them
	finish   context.CancelCauseFunc
}

// life is the time between a start and a stop.
type life struct {
	stop  context.CancelFunc
	loops sync.WaitGroup
	// done is closed when all loops have ended, also those of lives before.
	done chan struct{}
}

// Start reads what is left from processes that ended, see [Mailbox.Recover], and begins to execute what is queued. It fails, and starts
// nothing, when it cannot read that. Threads that fail by themselves are logged, and tried again later. Starting again does nothing; a Start
// while another one is under way waits for it. When it has returned, ctx has no meaning for the Mailbox any more.
func (m *Mailbox) Start(ctx context.Context) error {
	if err := m.executes(); err != nil {
		return err
	}
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

// begin starts the loops. The caller holds the lock.
func (m *Mailbox) begin() {
	ctx, stop := context.WithCancel(m.base)
	l, former := &life{stop: stop, done: make(chan struct{})}, m.life
	m.life, m.started, m.polls = l, true, true
	l.loops.Go(func() { m.schedule(ctx) })
	l.loops.Go(func() { m.monitor(ctx) })
	if m.cfg.Retention.Interval > 0 {
		l.loops.Go(func() { m.collecting(ctx) })
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
	return m.started && !m.closing
}

// shut reports whether the Mailbox is closed, or about to be.
func (m *Mailbox) shut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closing
}

// open refuses what comes after Close. What is being executed while it waits may still queue requests, for other processes.
func (m *Mailbox) open() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("mailbox: %w", ErrShutdown)
	}
	return nil
}

// polled reports whether the Mailbox executes what is queued, or did.
func (m *Mailbox) polled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.polls
}

// Stop takes nothing from the queue any more, and waits until the loops and Config.Retention.Maintain have ended. What is being executed
// continues. The Mailbox can be started again. When ctx is done before, Stop returns its error, and has stopped all the same.
func (m *Mailbox) Stop(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return fmt.Errorf("mailbox: stop: %w", err)
	}
	defer m.exit()
	m.mu.Lock()
	l, started := m.life, m.started
	m.started = false
	m.mu.Unlock()
	if !started {
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

// Close executes nothing new and waits until what is being executed has ended, which may queue requests until then. After it each request, and
// each [Mailbox.Await] of what is not terminal, is [ErrShutdown]. When ctx is done before, the rest is asked to end, and given
// back for other processes. What continues all the same for Config.Waits.Close is abandoned: Close returns an error that names it, its lease
// is renewed no more, so that another process can continue when it is over, and what it still writes is refused then. Closing again waits
// again.
func (m *Mailbox) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	l := m.life
	m.mu.Unlock()
	loops, done := make(chan struct{}), make(chan struct{})
	if l != nil {
		l.stop()
		loops = l.done
	} else {
		close(loops)
	}
	go func() {
		<-loops
		m.work.Wait()
		close(done)
	}()
	err := m.end(ctx, done, loops)
	m.finish(ErrShutdown)
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	if m.pump != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.Waits.Live)
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
	wait(context.WithoutCancel(ctx), m.cfg.Waits.Close, done)
	select {
	case <-done:
		return nil
	case <-loops:
		return m.abandon(ctx)
	default:
		return errors.Join(m.abandon(ctx),
			fmt.Errorf("mailbox: close: a poll of the store, or Config.Retention.Maintain, continued for %v after it was asked to end; let it heed its context", m.cfg.Waits.Close))
	}
}

// abandon leaves the executions that continue to themselves, and returns which.
func (m *Mailbox) abandon(ctx context.Context) error {
	m.mu.Lock()
	left := slices.Clone(m.running)
	m.mu.Unlock()
	var errs []error
	for _, x := range left {
		errs = append(errs, fmt.Errorf("mailbox: close: dispatch %.80q of thread %.80q continued for %v after it was asked to end, and was abandoned; let its runtime heed its context",
			x.hold.Dispatch, x.hold.Thread, m.cfg.Waits.Close))
		if x.abandoned.Swap(true) {
			continue
		}
		m.event(ctx, "abandon", x.hold.Thread, x.hold.Dispatch, ErrShutdown)
		m.cfg.Logger.ErrorContext(ctx, "mailbox_execution_abandoned", "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "grace", m.cfg.Waits.Close)
		x.events.end()
	}
	return errors.Join(errs...)
}
