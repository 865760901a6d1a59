package queue

import (
	"context"
	"time"
)

// Expire takes a thread from a holder whose lease is over. It returns the dispatch, as it is now, or false.
func (q *Queue) Expire(ctx context.Context, thread string) (s State, ok bool, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpReclaim, Thread: thread})
	defer func() { end(!ok, err) }()
	err = q.transition(ctx, thread, nil, need{next: true}, func(t *turn) error {
		id := expire(t)
		s, ok = t.state(id), id != ""
		return nil
	})
	return s, ok && err == nil, err
}

// expire returns the dispatch of the claim that is over.
func expire(t *turn) string {
	c := t.thread.Claim
	if c == nil || !t.now.After(c.Until.Add(t.Skew)) {
		return ""
	}
	d, ok := t.dispatches[c.Dispatch]
	switch {
	case !ok: // it cannot be: claimed dispatches are never dropped
	case t.ended(d):
		t.acknowledge(d, EndExpired)
	case d.Epoch < t.thread.Epoch:
		t.supersede(d, StaleText)
	case c.Stop != "":
		d.LastError = c.Stop
		t.settled(d, Cancelled, EndExpired)
		t.finishRun(d, TerminationCancelled, "")
	default:
		t.failed(d, expiredText, t.now, false)
		d = t.dispatches[d.ID]
		d.End = EndExpired
		t.put(d)
	}
	t.free()
	return d.ID
}

// Lapse ends the run of a thread whose time to wait is over. It returns the run, or nothing.
func (q *Queue) Lapse(ctx context.Context, thread string) (run string, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpLapse, Thread: thread})
	defer func() { end(run == "", err) }()
	err = q.transition(ctx, thread, nil, need{next: true}, func(t *turn) error {
		run = lapse(t)
		return nil
	})
	return run, err
}

// lapse ends a run whose time to wait is over. What is queued for later came too late for it; what is due, or was and is to be tried
// again, came in time.
func lapse(t *turn) string {
	run, ok := t.runs[t.thread.Open.ID]
	if !ok || !t.thread.Lapsed(t.now) || t.inTime() {
		return ""
	}
	t.finishRun(Dispatch{ID: run.Dispatch, RunID: run.ID}, TerminationCancelled, lapsedText+run.Wait)
	t.write(t.later, rankOf(t.later, PriorityDefault))
	return run.ID
}

const lapsedText = "nothing came in time for which it waited: "

// Lapsed reports whether the open run has waited long enough, unless something came in time.
func (t *Thread) Lapsed(now time.Time) bool {
	open := &t.Open
	return t.Claim == nil && t.PausedAt.IsZero() && open.Status == RunWaiting && !open.WaitUntil.IsZero() && !open.WaitUntil.After(now)
}
