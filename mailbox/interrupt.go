package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// Interruption is what an interrupt came to.
type Interruption struct {
	// Epoch is the thread's new one.
	Epoch uint64
	// Active is what the thread is claimed for; it is stale now.
	Active *Dispatch
	// Superseded were queued, and Kept still are.
	Superseded []Dispatch
	Kept       int
}

// Interrupt stops what a thread does and supersedes what users have queued for it.
// What the program itself has queued, such as the results of tasks, stays.
func (m *Mailbox) Interrupt(ctx context.Context, thread string) (Interruption, error) {
	out, err := m.interrupt(ctx, thread, queue.Interrupt{})
	i := Interruption{Epoch: out.Epoch, Superseded: out.Superseded, Kept: out.Kept}
	if out.Active != nil {
		i.Active = &out.Active.Dispatch
	}
	return i, err
}

func (m *Mailbox) interrupt(ctx context.Context, thread string, i queue.Interrupt) (queue.Interruption, error) {
	i.Keep = func(d Dispatch) bool { return d.Origin == OriginInternal }
	out, err := m.queue.Interrupt(ctx, thread, i)
	if err != nil {
		return out, err
	}
	if out.Active != nil {
		m.ask(out.Active.Dispatch, stopped("interrupted"))
	}
	m.wake()
	return out, nil
}

// ask ends the context of an execution in this process because of a cause. One in another process is notified of what was written, and renews
// its lease at once.
func (m *Mailbox) ask(dispatch Dispatch, cause error) {
	if x := m.executionOf(dispatch.ID); x != nil {
		x.cancel(cause)
	}
}

// stopped is the cause of an execution that is asked to stop.
func stopped(why string) error { return fmt.Errorf("%w: %s", ErrStopped, why) }

// yield interrupts a thread and waits until it is free, unless it has the dispatch for which it is asked.
func (m *Mailbox) yield(ctx context.Context, thread, dispatch string) (queue.Interruption, error) {
	out, err := m.interrupt(ctx, thread, queue.Interrupt{Reserve: 2 * m.cfg.Waits.Stop, Unless: dispatch})
	if err != nil || out.Active == nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Waits.Stop)
	defer cancel()
	for polls := 1; ; polls++ {
		if polls%recallPolls == 0 { // it may not have listened yet when it was notified
			m.queue.Recall(ctx, thread, out.Active.Dispatch.ID)
		}
		if err := m.awaitEnd(ctx, thread, out.Active.Dispatch.ID); err != nil {
			return out, wrap("thread", thread, errors.Join(ErrBusy, err))
		}
		h, err := m.queue.Thread(ctx, thread)
		switch {
		case err != nil && ctx.Err() != nil:
			return out, wrap("thread", thread, errors.Join(ErrBusy, err))
		case err != nil:
			return out, err
		case h.Claim == nil || h.Claim.Token != out.Active.Claim.Token:
			return out, nil
		case h.Claim.Until.Before(m.queue.Now()):
			if _, _, err := m.queue.Expire(ctx, thread); err != nil {
				return out, err
			}
		}
	}
}

// awaitEnd waits until an execution of this process has ended, or a little while if
// another one has it.
func (m *Mailbox) awaitEnd(ctx context.Context, thread, dispatch string) error {
	var done <-chan struct{}
	if x := m.execution(thread); x != nil && x.claimed.Dispatch.ID == dispatch {
		done = x.done
	}
	timer := time.NewTimer(stopPoll)
	defer timer.Stop()
	var tick <-chan time.Time
	if done == nil {
		tick = timer.C
	}
	select {
	case <-done:
	case <-tick:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// stopPoll is how often to poll for the end of an execution of another process, and recallPolls how many polls come between two notifications
// of its holder.
const (
	stopPoll    = 25 * time.Millisecond
	recallPolls = 20
)
