package mailbox

import (
	"cmp"
	"context"
)

// Interrupt makes what a thread is claimed for stale, and supersedes what is queued
// for it.
func (q *Queue) Interrupt(ctx context.Context, thread string, i Interrupt) (Interruption, error) {
	ctx, end := q.begin(ctx, Operation{Name: OpInterrupt, Thread: thread})
	i.ID = cmp.Or(i.ID, q.cfg.NewID())
	var out Interruption
	again, tried := false, false
	err := q.updateWith(ctx, thread, func() Need {
		tried = tried || len(out.Superseded) > 0 // by a try that failed
		return i.need()
	}, func(t *turn) (c Change) {
		c, out, again = interrupt(t, i)
		return c
	})
	if err == nil && again {
		out.Superseded, err = q.superseded(ctx, thread, out.Epoch, tried)
	}
	end(false, err)
	return out, err
}

// superseded lists what the interrupt superseded that began an epoch, as far as it is kept. When this process did that and was
// not told, observers have not heard of it.
func (q *Queue) superseded(ctx context.Context, thread string, epoch uint64, tell bool) (out []Dispatch, err error) {
	const page = 500
	query := DispatchQuery{Thread: thread, Statuses: []Status{Superseded}, Limit: page}
	for {
		list, err := q.Dispatches(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range list {
			// What was claimed then and was superseded later has an earlier epoch.
			if d := list[i]; d.Epoch == epoch && d.RunStatus == "" {
				out = append(out, d)
			}
		}
		if len(list) < page {
			break
		}
		query.After = list[page-1]
	}
	for i := 0; tell && i < len(out); i++ {
		for _, observer := range q.cfg.Observers {
			observer.Settled(ctx, Taken{Dispatch: out[i]})
		}
	}
	return out, nil
}

// Cancel ends a dispatch that is queued, and asks the holder of one that is claimed to
// stop: if it does not, the dispatch is cancelled when its lease is over. It says
// whether the dispatch is cancelled, or will be.
func (q *Queue) Cancel(ctx context.Context, id, why string) (taken Taken, ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpCancel, Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, KindDispatch, id)
	if err != nil || !found {
		return Taken{}, false, err
	}
	err = q.update(ctx, thread, Need{Dispatches: []string{id}, RunsOf: true}, func(t *turn) (out Change) {
		out, taken, ok = cancel(t, id, cmp.Or(clip(why), "cancelled"))
		return out
	})
	return taken, ok && err == nil, err
}

// CancelRun ends a run that waits, and says whether it did.
func (q *Queue) CancelRun(ctx context.Context, thread, run, why string) (ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpCancelRun, Thread: thread})
	defer func() { end(!ok, err) }()
	err = q.update(ctx, thread, Need{Runs: []string{run}}, func(t *turn) (out Change) {
		out, ok = cancelRun(t, run, clip(why))
		return out
	})
	return ok && err == nil, err
}

// Expire takes a thread from a holder whose lease is over. It returns the dispatch, as
// it is now, or false.
func (q *Queue) Expire(ctx context.Context, thread string) (taken Taken, ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpReclaim, Thread: thread})
	defer func() { end(!ok, err) }()
	need := Need{Claimed: true, Next: true, Now: q.now(), RunsOf: true}
	var now, tried Claim // a try that failed may have ended it
	err = q.updateWith(ctx, thread, func() Need {
		if now.Dispatch != "" {
			tried, need.Dispatches = now, []string{now.Dispatch}
		}
		return need
	}, func(t *turn) (out Change) {
		var id string
		now = Claim{} // what was decided on state that was out of date does not count
		if out, id = expire(t); id != "" {
			now = *t.s.Head.Claim
		} else {
			id = t.expired(tried)
		}
		taken, ok = t.taken(id), id != ""
		return out
	})
	return taken, ok && err == nil, err
}

// Lapse ends the run of a thread whose time to wait is over. It returns the run, or nothing.
func (q *Queue) Lapse(ctx context.Context, thread string) (run string, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpLapse, Thread: thread})
	defer func() { end(run == "", err) }()
	need := Need{RunsOf: true, Next: true, Now: q.now()}
	now, tried := "", "" // a try that failed may have ended it
	err = q.updateWith(ctx, thread, func() Need {
		if now != "" {
			tried, need.Runs = now, []string{now}
		}
		return need
	}, func(t *turn) (out Change) {
		if out, run = lapse(t); run == "" && t.lapsed(tried) {
			run, now = tried, ""
		} else {
			now = run
		}
		return out
	})
	return run, err
}

// Replay queues a dead letter again, for a new run of that id.
func (q *Queue) Replay(ctx context.Context, id, newRun string) (taken Taken, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpReplay, Dispatch: id})
	defer func() { end(false, err) }()
	d, found, err := q.Dispatch(ctx, id)
	if err != nil || !found {
		return Taken{}, cmp.Or(err, wrap("dispatch", id, ErrNotFound))
	}
	var verdict error
	err = q.update(ctx, d.Thread, Need{Dispatches: []string{id}, Dedupe: d.Dedupe, RunsOf: true}, func(t *turn) (out Change) {
		out, taken, verdict = replay(t, id, newRun)
		return out
	})
	return taken, cmp.Or(err, verdict)
}

// Discard gives a dead letter up. It is dropped with other old dispatches.
func (q *Queue) Discard(ctx context.Context, id string) (err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpDiscard, Dispatch: id})
	defer func() { end(false, err) }()
	thread, found, err := q.find(ctx, KindDispatch, id)
	if err != nil || !found {
		return cmp.Or(err, wrap("dispatch", id, ErrNotFound))
	}
	var verdict error
	err = q.update(ctx, thread, Need{Dispatches: []string{id}}, func(t *turn) (out Change) {
		out, verdict = discard(t, id)
		return out
	})
	return cmp.Or(err, verdict)
}
