package mailbox

import (
	"context"
	"errors"
	"fmt"
)

// WaitTasks is what a run waits for that has tasks in the background, as package agent has it.
const WaitTasks = "background_tasks"

// recoverBatch bounds what Recover does in one look at the store. The loop does the rest.
const recoverBatch = 100

// Recover takes threads from holders whose lease is over, and wakes runs that wait for
// background tasks, as Config.Wake says. It says how many. Start does it first; what is due later,
// the Mailbox does by itself.
func (m *Mailbox) Recover(ctx context.Context) (int, error) {
	due, _, err := m.due(ctx, DueQuery{By: m.queue.now(), Limit: recoverBatch})
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range due {
		if due[i].Claim == nil {
			continue
		}
		k, ok, err := m.queue.Expire(ctx, due[i].Thread)
		if err != nil {
			return n, err
		}
		if ok {
			m.settled(k.Dispatch)
			n++
		}
	}
	woken, err := m.wakeWaiting(ctx)
	return n + woken, err
}

// wakeWaiting wakes runs that wait for background tasks, which may have ended with their process.
func (m *Mailbox) wakeWaiting(ctx context.Context) (woken int, err error) {
	if m.cfg.Wake == nil {
		return 0, nil
	}
	q := ThreadQuery{Wait: WaitTasks, Limit: recoverBatch}
	for {
		heads, err := m.cfg.Store.Threads(ctx, q)
		if err != nil {
			return woken, fmt.Errorf("mailbox: threads that wait: %w", err)
		}
		for i := range heads {
			ok, err := m.wakeRun(ctx, heads[i])
			if err != nil {
				return woken, err
			}
			if ok {
				woken++
			}
		}
		if len(heads) < recoverBatch {
			return woken, nil
		}
		q.After = heads[len(heads)-1].Thread
	}
}

// wakeRun queues a request for a run that waits, once for each time that it came to wait.
func (m *Mailbox) wakeRun(ctx context.Context, h Head) (bool, error) {
	if h.Claim != nil || h.Queued > 0 {
		return false, nil // it goes on anyway
	}
	run, found, err := m.queue.Run(ctx, h.Open.ID)
	if err != nil || !found || run.Status != RunWaiting {
		return false, err
	}
	r, ok := m.cfg.Wake(run)
	if !ok {
		return false, nil
	}
	r.Thread, r.Tenant, r.Run = run.Thread, h.Tenant, run.ID
	r.Origin, r.Mode, r.Key = OriginInternal, ModeInternalWake, "wake "+run.Session
	sub, err := m.SubmitBackground(ctx, r)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrExists) {
		m.cfg.Logger.WarnContext(ctx, "mailbox_wake_refused", "thread", run.Thread, "run", run.ID, "error", err)
		return false, nil
	}
	return err == nil && !sub.Repeated, err
}
