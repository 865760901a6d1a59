package mailbox

import (
	"cmp"
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
func (q *queue) Drop(ctx context.Context, thread string) error {
	now, err := q.readTime(ctx)
	if err != nil {
		return wrap("thread", thread, err)
	}
	_, err = q.drop(ctx, thread, func(s store.Snapshot) (*store.Batch, error, error) { return dropped(thread, s, now, q.skew) })
	return err
}

// Delete drops a thread and the threads below it that belong to its tenant, with everything that the store has in them, the lowest first.
// It returns how many there were. One that a process holds is [ErrBusy], as with [Mailbox.Drop]: those above it stay then.
func (q *queue) Delete(ctx context.Context, thread string) (n int, err error) {
	t, err := q.Thread(ctx, thread)
	if err == nil && t.Seq == 0 {
		err = wrap("thread", thread, ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	return q.delete(ctx, t, map[string]bool{})
}

func (q *queue) delete(ctx context.Context, t Thread, seen map[string]bool) (n int, err error) {
	seen[t.ID] = true
	for ref, err := range q.refs(ctx, store.Scan{Index: indexChild, Group: t.ID, Values: true}) {
		if err != nil {
			return n, wrap("thread", t.ID, err)
		}
		child := threadOf(ref)
		if child.Tenant != t.Tenant || seen[child.ID] {
			continue // a parent that another tenant has named, or a circle
		}
		below, err := q.delete(ctx, child, seen)
		if n += below; err != nil {
			return n, err
		}
	}
	if err := q.Drop(ctx, t.ID); err != nil {
		return n, err
	}
	return n + 1, nil
}

// drop drops a thread, or not, by a rule that sees its record and when it was found damaged, with the events of its dispatches. The rule
// returns what to write, and an error that holds all the same.
func (q *queue) drop(ctx context.Context, thread string, rule func(store.Snapshot) (*store.Batch, error, error)) (done bool, err error) {
	ctx, end := q.observe(ctx, Operation{Name: "drop_thread", Thread: thread})
	defer func() { end(!done, err) }()
	s := store.Scan{Index: indexOrder, Group: thread}
	ids, err := list(ctx, q, s, everything, func(ref store.Ref) (string, bool, error) { return ref.Key, true, nil })
	if err != nil {
		return false, err
	}
	query := store.Query{Cells: []store.Range{store.One(kindThread, ""), store.One(kindDamaged, "")}}
	for range 2 { // no store remembers the batch that dropped a thread: when its answer was lost, the thread is dropped again
		var busy error
		_, err = store.Update(ctx, q.store, thread, query, func(s store.Snapshot) (b *store.Batch, err error) {
			b, busy, err = rule(s)
			done = b != nil && b.Drop
			return b, err
		})
		if err = cmp.Or(err, busy); !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	if err != nil || !done {
		return false, wrap("thread", thread, translated(err))
	}
	return true, q.dropEvents(ctx, ids...)
}

// dropped returns the batch that drops a thread, or why it cannot be dropped yet. What stays of it is its fence.
func dropped(thread string, s store.Snapshot, now time.Time, skew time.Duration) (b *store.Batch, busy, err error) {
	t := Thread{ID: thread}
	if _, unreadable := cell(thread, s, kindThread, "", &t); unreadable != nil {
		if t, b, err = damaged(thread, s, now); err != nil {
			return nil, nil, err
		}
	}
	fence := t.Fence
	if c := t.Claim; c != nil {
		if until := t.leased(now).Add(skew); !now.After(until) {
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
func (q *queue) dropEvents(ctx context.Context, dispatches ...string) error {
	e, ok := q.store.(store.Events)
	if !ok || len(dispatches) == 0 {
		return nil
	}
	return e.DropEvents(ctx, dispatches...)
}
