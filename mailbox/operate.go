package mailbox

import "context"

// Cancel cancels a dispatch: one that is queued at once, one that is executed by asking it to
// stop. It is durable: the execution stops at the latest when its lease is to be renewed.
// It reports whether there was something to cancel.
func (m *Mailbox) Cancel(ctx context.Context, dispatch string) (bool, error) {
	k, ok, err := m.queue.Cancel(ctx, dispatch, "cancelled")
	if err != nil || !ok {
		return false, err
	}
	if k.Dispatch.Status == Claimed {
		m.ask(k.Dispatch, stopped("cancelled"))
	}
	return true, nil
}

// CancelRun cancels a run: what it does, what is queued for it, or its waiting.
func (m *Mailbox) CancelRun(ctx context.Context, run string) (bool, error) {
	r, found, err := m.queue.Run(ctx, run)
	if err != nil || !found {
		return false, err
	}
	list, err := m.queue.Dispatches(ctx, DispatchQuery{Thread: r.Thread, Statuses: []Status{Queued, Claimed}, Limit: m.queue.Limits().Depth + 1})
	if err != nil {
		return false, wrap("run", run, err)
	}
	some := false
	for i := range list {
		if list[i].RunID == run {
			ok, err := m.Cancel(ctx, list[i].ID)
			if err != nil {
				return some, err
			}
			some = some || ok
		}
	}
	waited, err := m.queue.CancelRun(ctx, r.Thread, run, "cancelled")
	return some || waited, err
}

// CancelThread cancels the run that a thread has.
func (m *Mailbox) CancelThread(ctx context.Context, thread string) (bool, error) {
	h, err := m.queue.Thread(ctx, thread)
	if err != nil || h.Open.ID == "" {
		return false, err
	}
	return m.CancelRun(ctx, h.Open.ID)
}

// DeadLetters lists dead letters by the time of their end, after that one.
func (m *Mailbox) DeadLetters(ctx context.Context, after Dispatch, limit int) ([]Dispatch, error) {
	return m.queue.Dispatches(ctx, DispatchQuery{Statuses: []Status{DeadLetter}, After: after, Limit: limit})
}

// Replay queues a dead letter again, for a new run.
func (m *Mailbox) Replay(ctx context.Context, dispatch string) (Submission, error) {
	k, err := m.queue.Replay(ctx, dispatch, m.cfg.NewID())
	if err != nil {
		return Submission{}, err
	}
	m.wake()
	return m.submission(k), nil
}

// Discard gives a dead letter up.
func (m *Mailbox) Discard(ctx context.Context, dispatch string) error {
	return m.queue.Discard(ctx, dispatch)
}
