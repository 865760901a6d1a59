package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Cancel cancels a dispatch: one that is queued at once, one that is executed by asking it to stop. It is durable: the execution stops at the
// latest when its lease is to be renewed. It reports whether there was something to cancel.
func (m *Mailbox) Cancel(ctx context.Context, dispatch string) (bool, error) {
	k, ok, err := m.cancel(ctx, dispatch, "cancelled")
	if ok && k.Dispatch.Status == Claimed {
		m.ask(dispatch, stopped("cancelled"))
	}
	return ok, err
}

// CancelRun cancels a run: what it does, what is queued for it, or its waiting.
func (m *Mailbox) CancelRun(ctx context.Context, run string) (some bool, err error) {
	r, found, err := m.Run(ctx, run)
	if err != nil || !found {
		return false, err
	}
	list, err := m.Dispatches(ctx, DispatchQuery{Thread: r.Thread, Statuses: []Status{Queued, Claimed}, Limit: everything})
	for i := range list {
		if err == nil && list[i].RunID == run {
			var ok bool
			ok, err = m.Cancel(ctx, list[i].ID)
			some = some || ok
		}
	}
	if err != nil {
		return some, wrap("run", run, err)
	}
	waited, err := m.endWait(ctx, r.Thread, run, "cancelled")
	return some || waited, err
}

// CancelThread cancels the run that a thread has.
func (m *Mailbox) CancelThread(ctx context.Context, thread string) (bool, error) {
	h, err := m.Thread(ctx, thread)
	if err != nil || h.Open.ID == "" {
		return false, err
	}
	return m.CancelRun(ctx, h.Open.ID)
}

// DeadLetters lists dead letters by the time of their end, after that one.
func (m *Mailbox) DeadLetters(ctx context.Context, after Dispatch, limit int) ([]Dispatch, error) {
	return m.Dispatches(ctx, DispatchQuery{Statuses: []Status{DeadLetter}, After: after, Limit: limit})
}

// Replay queues a dead letter again, for a new run.
func (m *Mailbox) Replay(ctx context.Context, dispatch string) (Submission, error) {
	k, err := m.replay(ctx, dispatch, m.cfg.NewID())
	if err != nil {
		return Submission{}, err
	}
	m.wake()
	return m.submission(k), nil
}

// Interrupt stops what a thread does and supersedes what users have queued for it.
// What the program itself has queued, such as the results of tasks, stays.
func (m *Mailbox) Interrupt(ctx context.Context, thread string) (Interruption, error) {
	return m.interrupt(ctx, thread, interruptRequest{})
}

func (m *Mailbox) interrupt(ctx context.Context, thread string, i interruptRequest) (Interruption, error) {
	i.Keep = func(d Dispatch) bool { return d.Origin == OriginInternal }
	out, err := m.interruptThread(ctx, thread, i)
	if err != nil {
		return out, err
	}
	if out.Active != nil {
		m.ask(out.Active.ID, stopped("interrupted"))
	}
	m.wake()
	return out, nil
}

// ask ends the context of an execution in this process because of a cause. One in another process is notified of what was written, and renews
// its lease at once.
func (m *Mailbox) ask(dispatch string, cause error) {
	if x := m.executionOf(dispatch); x != nil {
		x.cancel(cause)
	}
}

// stopped is the cause of an execution that is asked to stop.
func stopped(why string) error { return fmt.Errorf("%w: %s", ErrStopped, why) }

// stopPoll is how often to poll for the end of an execution of another process, and recallPolls how many polls come between two notifications
// of its holder.
const (
	stopPoll    = 25 * time.Millisecond
	recallPolls = 20
)

// yield interrupts a thread and waits until it is free, unless it has the dispatch for which it is asked.
func (m *Mailbox) yield(ctx context.Context, thread, dispatch string) (Interruption, error) {
	out, err := m.interrupt(ctx, thread, interruptRequest{Reserve: 2 * m.cfg.Waits.Stop, Unless: dispatch})
	if err != nil || out.Active == nil {
		return out, err
	}
	active := out.Active.ID
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Waits.Stop)
	defer cancel()
	for polls := 1; ; polls++ {
		if polls%recallPolls == 0 { // it may not have listened yet when it was notified
			m.recall(ctx, thread, active)
		}
		var done <-chan struct{}
		pause := stopPoll
		if x := m.executionOf(active); x != nil {
			done, pause = x.done, m.cfg.Waits.Stop
		}
		if !wait(ctx, pause, done) {
			return out, wrap("thread", thread, errors.Join(ErrBusy, context.Cause(ctx)))
		}
		h, err := m.Thread(ctx, thread)
		switch {
		case err != nil && ctx.Err() != nil:
			return out, wrap("thread", thread, errors.Join(ErrBusy, err))
		case err != nil, h.Claim == nil, h.Claim.Token != out.Active.Token:
			return out, err
		case h.Claim.Until.Before(m.now()):
			if _, _, err := m.expire(ctx, thread); err != nil {
				return out, err
			}
		}
	}
}

// PauseThread pauses a thread: what it executes is asked to stop at its next checkpoint and is given back, without costing an attempt, and
// nothing of it is claimed until [Mailbox.ResumeThread]. What is submitted in the background is queued. Pausing again does nothing. A
// thread without a dispatch is [ErrNotFound].
func (m *Mailbox) PauseThread(ctx context.Context, thread string) (Thread, error) {
	s, err := m.pause(ctx, thread, true)
	if err == nil && s.Claim != nil {
		m.ask(s.Dispatch.ID, ErrPaused)
	}
	return s.Thread, err
}

// ResumeThread ends the pause of a thread. Its run continues where it was.
func (m *Mailbox) ResumeThread(ctx context.Context, thread string) (Thread, error) {
	s, err := m.pause(ctx, thread, false)
	m.wake()
	return s.Thread, err
}

// Pause lets no process claim threads of a tenant, or of any tenant if it is empty, until [Mailbox.Resume]. Executions under way continue
// to their end, and so does a claim under way. Other processes follow within Config.Poll. Foreground requests are [ErrPaused], others are queued.
func (m *Mailbox) Pause(ctx context.Context, tenant string) error {
	return m.setPause(ctx, tenant, true)
}

// Resume ends what [Mailbox.Pause] began.
func (m *Mailbox) Resume(ctx context.Context, tenant string) error {
	return m.setPause(ctx, tenant, false)
}

func (m *Mailbox) setPause(ctx context.Context, tenant string, pause bool) error {
	if err := m.pauseTenant(ctx, tenant, pause); err != nil {
		return err
	}
	m.pauses.set(tenant, pause)
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

// set is what this process knows at once, also a round under way that has read before: what is queued after a pause is not claimed.
func (p *pauses) set(tenant string, pause bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read, p.tenants = time.Time{}, slices.DeleteFunc(slices.Clone(p.tenants), func(other string) bool { return other == tenant })
	if pause {
		p.tenants = append(p.tenants, tenant)
	}
}

// paused returns the tenants that are paused, and whether all are. It reads them once in a Config.Poll.
func (m *Mailbox) paused(ctx context.Context) (tenants []string, all bool, err error) {
	p := &m.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.read) >= m.cfg.Poll {
		list, err := m.Pauses(ctx)
		if err != nil {
			return nil, false, err
		}
		p.tenants, p.read = list, now
	}
	return p.tenants, slices.Contains(p.tenants, ""), nil
}
