package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Drop deletes a thread with all that is in it, also a damaged one. It is [ErrBusy] as long as a process may hold the thread, and names
// that and the end of its lease. A claim that is damaged itself counts as over when the thread was not written to for suspendedLease. The
// holders of the thread before can write nothing any more, and the thread's next claim has a greater fence than all before.
func (q *Queue) Drop(ctx context.Context, thread string) (err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpDrop, Thread: thread})
	defer func() { end(false, err) }()
	now, err := q.Time(ctx)
	if err != nil {
		return wrap("thread", thread, err)
	}
	ids, err := q.idsOf(ctx, thread)
	if err != nil {
		return err
	}
	query := store.Query{Cells: []store.Range{store.One(kindThread, ""), store.One(kindDamaged, "")}}
	for range 2 { // no store remembers the batch that dropped a thread: when its answer was lost, the thread is dropped again
		var busy error
		_, err = store.Update(ctx, q.store, thread, query, func(s store.Snapshot) (b *store.Batch, err error) {
			b, busy, err = q.drop(thread, s, now)
			return b, err
		})
		if err == nil {
			err = busy
		}
		if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	if err != nil {
		return wrap("thread", thread, translated(err))
	}
	return q.dropEvents(ctx, ids...)
}

// drop returns the batch that drops a thread, or why it cannot be dropped yet. What stays of it is its fence.
func (q *Queue) drop(thread string, s store.Snapshot, now time.Time) (b *store.Batch, busy, err error) {
	value, ok := s.Cell(kindThread, "")
	t := Thread{ID: thread}
	if ok && decode(thread, cellID{kind: kindThread}, value, &t) != nil {
		if t, b, err = damaged(thread, s, now); err != nil {
			return nil, nil, err
		}
	}
	fence := t.Fence
	if c := t.Claim; c != nil {
		if until := t.leased(now).Add(q.limits.Skew); !now.After(until) {
			return b, fmt.Errorf("%w: %.80q holds it until %s; interrupt it first, or wait", ErrBusy, c.Owner, until.Format(time.RFC3339)), nil
		}
		fence = max(fence, c.Fence)
	}
	b = &store.Batch{Drop: true}
	if fence > 0 { // without a place in an index: no listing has it
		b.Put = []store.Cell{{Kind: kindThread, Value: encode(Thread{ID: thread, Fence: fence})}}
	}
	return b, nil, nil
}

// damaged replaces a thread record that cannot be read. It has a claim, for all that is known, and a fence that the thread cannot have
// reached: each claim makes a revision. Its lease is counted from when the damage was first noticed, which the batch writes.
func damaged(thread string, s store.Snapshot, now time.Time) (t Thread, b *store.Batch, err error) {
	if s.Revision > math.MaxInt64 {
		return t, nil, fmt.Errorf("revision %d has no fence", s.Revision)
	}
	t = Thread{ID: thread, Fence: s.Revision, Claim: &Claim{}, UpdatedAt: now}
	value, _ := s.Cell(kindDamaged, "")
	if at, err := time.Parse(time.RFC3339Nano, string(value)); err == nil {
		t.UpdatedAt = at
		return t, nil, nil
	}
	return t, &store.Batch{Put: []store.Cell{{Kind: kindDamaged, Value: now.AppendFormat(nil, time.RFC3339Nano)}}}, nil
}

const (
	// longestLease is the longest lease that can be meant. A claim that ends later is damaged.
	longestLease = 366 * 24 * time.Hour
	// suspendedLease is as long as leases last that are renewed, by default.
	suspendedLease = 10 * time.Minute
)

// leased is when the claim of the thread is over. A damaged claim is as long as leases last after the latest write, since a holder that is
// well renews its lease sooner.
func (t *Thread) leased(now time.Time) time.Time {
	c := t.Claim
	if c.Dispatch == "" || c.Token == "" || c.Fence != t.Fence || c.Until.IsZero() || c.Until.After(now.Add(longestLease)) {
		return t.UpdatedAt.Add(suspendedLease)
	}
	return c.Until
}

// dropEvents deletes the events of dispatches that are gone. What a crash leaves goes with its age.
func (q *Queue) dropEvents(ctx context.Context, dispatches ...string) error {
	e, ok := q.store.(store.Events)
	if !ok || len(dispatches) == 0 {
		return nil
	}
	return e.DropEvents(ctx, dispatches...)
}

// idsOf returns the ids of all dispatches of a thread.
func (q *Queue) idsOf(ctx context.Context, thread string) (ids []string, err error) {
	err = q.scan(ctx, store.Scan{Index: indexOrder, Group: thread}, maxPage, func(ref store.Ref) error {
		ids = append(ids, ref.Key)
		return nil
	})
	return ids, err
}
