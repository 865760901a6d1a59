package queue

import (
	"cmp"
	"context"
)

// Replay queues a dead letter again, for a new run of that id.
func (q *Queue) Replay(ctx context.Context, id, newRun string) (s State, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpReplay, Dispatch: id})
	defer func() { end(false, err) }()
	d, found, err := q.Dispatch(ctx, id)
	if err != nil || !found {
		return State{}, cmp.Or(err, wrap("dispatch", id, ErrNotFound))
	}
	err = q.transition(ctx, d.Thread, nil, need{dispatches: []string{id}, dedupe: d.Dedupe}, func(t *turn) error {
		if err := replay(t, id, newRun); err != nil {
			return about(id, err)
		}
		s = t.state(id)
		return nil
	})
	return s, err
}

func replay(t *turn, id, newRun string) error {
	d, ok := t.dispatches[id]
	switch {
	case !ok:
		return ErrNotFound
	case d.RunID == newRun:
		return nil
	case d.Status != DeadLetter:
		return wrongToken()
	case t.thread.Queued >= t.Depth:
		return ErrFull
	case t.duplicate != "":
		return ErrExists
	}
	old := t.runs[d.RunID]
	d.Status, d.Attempts, d.Epoch, d.RunID, d.End = Queued, 0, t.thread.Epoch, newRun, ""
	d.AvailableAt, d.Holding = t.now, false
	t.putRun(Run{
		ID: newRun, Thread: d.Thread, Agent: old.Agent, Parent: old.Parent, Status: RunCreated, Input: old.Input, CreatedAt: t.now,
	})
	d = cleared(d)
	t.put(d)
	t.sooner(d)
	return nil
}

// Discard makes a dead letter a cancelled dispatch, which is dropped like others.
func (q *Queue) Discard(ctx context.Context, id string) (err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpDiscard, Dispatch: id})
	defer func() { end(false, err) }()
	thread, found, err := q.find(ctx, indexDispatch, id)
	if err != nil || !found {
		return cmp.Or(err, wrap("dispatch", id, ErrNotFound))
	}
	return q.transition(ctx, thread, nil, need{dispatches: []string{id}}, func(t *turn) error {
		d, ok := t.dispatches[id]
		switch {
		case !ok:
			return about(id, ErrNotFound)
		case d.Status == Cancelled:
			return nil
		case d.Status != DeadLetter:
			return about(id, wrongToken())
		}
		d.Status = Cancelled
		t.put(d)
		t.save()
		return nil
	})
}
