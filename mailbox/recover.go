package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// waitTasks is what a run waits for that has tasks in the background, as package agent has it.
const waitTasks = "background_tasks"

// recoverBatch bounds what Recover does in one poll of the store. The loop does the rest.
const recoverBatch = 100

// Recover takes threads from holders whose lease is over, and wakes runs that wait for
// background tasks, by Config.Wake. It returns how many. Start does it first; what is due later,
// the Mailbox does by itself. A thread that fails does not keep the others back: the errors come together.
func (m *Mailbox) Recover(ctx context.Context) (int, error) {
	n, failed, err := m.recoverAll(ctx)
	return n, errors.Join(append(failed, err)...)
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

// recoverAll returns the errors of threads apart from one of the store, with which it ends.
func (m *Mailbox) recoverAll(ctx context.Context) (n int, failed []error, err error) {
	now, err := m.readTime(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("mailbox: recovery: %w", err)
	}
	due, _, err := m.due(ctx, dueQuery{By: now, Limit: recoverBatch})
	if err != nil {
		return 0, nil, err
	}
	for i := range due {
		if due[i].Claim == nil || m.renews(due[i]) {
			continue
		}
		_, ok, err := m.expire(ctx, due[i].ID)
		switch {
		case err != nil && ctx.Err() != nil:
			return n, failed, err
		case err != nil:
			m.setAside(ctx, due[i].ID, err)
			failed = append(failed, err)
		case ok:
			n++
		}
	}
	if m.cfg.Wake == nil {
		return n, failed, nil
	}
	woken, errs, err := m.wakeWaiting(ctx)
	return n + woken, append(failed, errs...), err
}

// wakeWaiting wakes runs that wait for background tasks, which may have ended with their process.
func (m *Mailbox) wakeWaiting(ctx context.Context) (woken int, errs []error, err error) {
	var left []Thread
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.collect.unwoken = left
	}()
	for q := (ThreadQuery{Wait: waitTasks, Limit: recoverBatch}); ; {
		threads, err := m.Threads(ctx, q)
		if err != nil {
			return woken, errs, fmt.Errorf("mailbox: threads that wait: %w", err)
		}
		n, again, failed := m.wakeRuns(ctx, threads)
		woken, left, errs = woken+n, append(left, again...), append(errs, failed...)
		switch {
		case ctx.Err() != nil:
			return woken, errs, context.Cause(ctx)
		case len(left) > maxAside:
			return woken, errs, fmt.Errorf("mailbox: threads that wait: %d of them failed, the last one with: %w", len(left), errs[len(errs)-1])
		case len(threads) < recoverBatch:
			return woken, errs, nil
		}
		q.After = threads[len(threads)-1].ID
	}
}

// wakeRuns wakes the runs of threads, and returns how many, which were not woken because of errors, and the errors.
func (m *Mailbox) wakeRuns(ctx context.Context, threads []Thread) (woken int, left []Thread, errs []error) {
	for i := range threads {
		ok, err := m.wakeRun(ctx, threads[i])
		switch {
		case err != nil:
			m.cfg.Logger.WarnContext(ctx, "mailbox_wake_failed", "thread", threads[i].ID, "run", threads[i].Open.ID, "error", err)
			left, errs = append(left, threads[i]), append(errs, err)
		case ok:
			woken++
		}
	}
	return woken, left, errs
}

// wakeLeft tries again to wake what could not be woken at the start, and still waits as it did then.
func (m *Mailbox) wakeLeft(ctx context.Context) {
	m.mu.Lock()
	threads := m.collect.unwoken
	m.mu.Unlock()
	var same, unread []Thread
	for _, h := range threads {
		switch now, err := m.Thread(ctx, h.ID); {
		case err != nil:
			unread = append(unread, h)
		case now.Open.ID == h.Open.ID && now.UpdatedAt.Equal(h.UpdatedAt):
			same = append(same, h)
		}
	}
	_, failed, _ := m.wakeRuns(ctx, same)
	m.mu.Lock()
	m.collect.unwoken = slices.Concat(unread, failed)
	m.mu.Unlock()
}

// wakeRun queues a request for a run that waits, once for each time that it came to wait.
func (m *Mailbox) wakeRun(ctx context.Context, h Thread) (bool, error) {
	if h.Claim != nil || h.Queued > 0 {
		return false, nil // it continues anyway
	}
	run, found, err := m.Run(ctx, h.Open.ID)
	if err != nil || !found || run.Status != RunWaiting {
		return false, err
	}
	r, ok := m.cfg.Wake(run)
	if !ok {
		return false, nil
	}
	r.Thread, r.Tenant, r.Run = run.Thread, h.Tenant, run.ID
	r.Origin, r.Mode, r.Key = OriginInternal, modeInternalWake, "wake "+run.Session
	sub, err := m.SubmitBackground(ctx, r)
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrExists) {
		m.cfg.Logger.WarnContext(ctx, "mailbox_wake_refused", "thread", run.Thread, "run", run.ID, "error", err)
		return false, nil
	}
	return err == nil && !sub.Repeated, err
}
