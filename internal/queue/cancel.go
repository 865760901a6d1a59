package queue

import (
	"cmp"
	"context"
)

// Cancel ends a dispatch that is queued, and asks the holder of one that is claimed to stop: if it does not, the dispatch is cancelled when
// its lease is over. It reports whether the dispatch is cancelled, or will be.
func (q *Queue) Cancel(ctx context.Context, id, why string) (s State, ok bool, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpCancel, Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, indexDispatch, id)
	if err != nil || !found {
		return State{}, false, err
	}
	err = q.transition(ctx, thread, nil, need{dispatches: []string{id}}, func(t *turn) error {
		ok = cancel(t, id, cmp.Or(Clip(why), "cancelled"))
		s = t.state(id)
		return nil
	})
	return s, ok && err == nil, err
}

func cancel(t *turn, id, why string) bool {
	d := t.dispatches[id]
	switch d.Status {
	case Cancelled:
		return true
	case Queued:
		held := d.Holding
		d.LastError = why
		t.settled(d, Cancelled, EndSettled)
		t.finishRun(d, TerminationCancelled, "")
		if held {
			t.released()
		} else {
			t.save()
		}
		return true
	case Claimed:
		if t.thread.Claim == nil || t.thread.Claim.Dispatch != id {
			return false
		}
		if t.thread.Claim.Stop == "" {
			t.thread.Claim.Stop, t.recall = why, true
			t.save()
		}
		return true
	default:
		return false
	}
}

// CancelRun ends a run that waits, and reports whether it has ended so.
func (q *Queue) CancelRun(ctx context.Context, thread, run, why string) (ok bool, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpCancelRun, Thread: thread})
	defer func() { end(!ok, err) }()
	err = q.transition(ctx, thread, nil, need{runs: []string{run}}, func(t *turn) error {
		ok = cancelRun(t, run, Clip(why))
		return nil
	})
	return ok && err == nil, err
}

func cancelRun(t *turn, id, why string) bool {
	run, ok := t.runs[id]
	if !ok || run.Status != RunWaiting {
		return ok && run.Status == RunDone && run.Termination == TerminationCancelled
	}
	t.finishRun(Dispatch{ID: run.Dispatch, RunID: id}, TerminationCancelled, why)
	t.save()
	return true
}
