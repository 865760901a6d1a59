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
		m.stopRun(ctx, *out.Active, "interrupted")
	}
	m.wake()
	return out, nil
}

// stopRun asks the execution of a dispatch to stop.
func (m *Mailbox) stopRun(ctx context.Context, k queue.State, why string) {
	m.ask(ctx, k, fmt.Errorf("%w: %s", ErrStopped, why), Command{Kind: queue.CommandCancel, Payload: []byte(why)})
}

// ask ends the context of an execution in this process because of a cause, or sends a command to another one.
func (m *Mailbox) ask(ctx context.Context, k queue.State, cause error, c Command) {
	if x := m.execution(k.Dispatch.Thread); x != nil && x.claimed.Dispatch.ID == k.Dispatch.ID {
		x.cancel(cause)
		return
	}
	c.ID = m.cfg.NewID()
	_, err := m.deliver(ctx, k.Dispatch, c)
	if err != nil {
		m.warn(ctx, "mailbox_stop_not_delivered", err, "thread", k.Dispatch.Thread, "dispatch", k.Dispatch.ID)
	}
}

// yield interrupts a thread and waits until it is free, unless it has the dispatch for which it is asked.
func (m *Mailbox) yield(ctx context.Context, thread, dispatch string) (queue.Interruption, error) {
	out, err := m.interrupt(ctx, thread, queue.Interrupt{Reserve: 2 * m.cfg.Waits.Stop, Unless: dispatch})
	if err != nil || out.Active == nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Waits.Stop)
	defer cancel()
	for {
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

// stopPoll is how often to poll for the end of an execution of another process.
const stopPoll = 25 * time.Millisecond
