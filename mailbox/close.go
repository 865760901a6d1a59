package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// Close takes nothing new and waits until what is being executed has ended. When ctx is
// done before, the rest is asked to end, and given back for other processes. What continues all the same for
// Config.Waits.Close is abandoned: Close returns an error that names it, its lease is renewed no more, so that another process can
// continue when it is over, and what it still writes is refused then. Closing again waits again.
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
	timer := time.NewTimer(m.cfg.Waits.Close)
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
			fmt.Errorf("mailbox: close: a poll of the store, or Config.Retention.Maintain, continued for %v after it was asked to end; let it heed its context", m.cfg.Waits.Close))
	}
}

// abandon leaves the executions that continue to themselves, and returns which.
func (m *Mailbox) abandon(ctx context.Context) error {
	m.mu.Lock()
	var left, noted []*execution
	for _, x := range m.running {
		left = append(left, x)
		if !x.abandoned {
			noted = append(noted, x)
		}
		x.abandoned = true
	}
	m.mu.Unlock()
	var errs []error
	for _, x := range left {
		errs = append(errs, fmt.Errorf("mailbox: close: dispatch %.80q of thread %.80q continued for %v after it was asked to end, and was abandoned; let its runtime heed its context",
			x.hold.Dispatch, x.hold.Thread, m.cfg.Waits.Close))
	}
	for _, x := range noted {
		m.event(ctx, queue.OpAbandon, x.hold.Thread, x.hold.Dispatch, ErrShutdown)
		m.cfg.Logger.ErrorContext(ctx, "mailbox_execution_abandoned", "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "grace", m.cfg.Waits.Close)
		x.events.end()
	}
	return errors.Join(errs...)
}
