package mailbox

import (
	"context"
	"fmt"
	"time"
)

// Drop forgets a thread with all that is in it, also a damaged one. It is [ErrBusy] as long as somebody may hold the thread, and says
// who and until when: interrupt it first, or wait. A claim that is damaged itself counts as over when nobody has written to the
// thread for as long as a lease lasts at most, [DefaultSuspendedLease]. Whoever held the thread before can write nothing
// any more, and the thread's next claim has a greater fence than all before, as if it had never been forgotten.
func (q *Queue) Drop(ctx context.Context, thread string) (err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpDrop, Thread: thread})
	defer func() { end(false, err) }()
	var verdict error
	err = q.update(ctx, thread, Need{Lenient: true}, func(t *turn) (out Change) {
		out, verdict = drop(t)
		return out
	})
	if err != nil {
		return err
	}
	return wrap("thread", thread, verdict)
}

// drop forgets a thread that nobody holds. Its fence stays.
func drop(t *turn) (Change, error) {
	fence := t.head.Fence
	if c := t.head.Claim; c != nil {
		if until := t.leased(); !t.now.After(until) {
			return Change{}, fmt.Errorf("%w: %.80q holds it until %s; interrupt it first, or wait", ErrBusy, c.Owner, until.Format(time.RFC3339))
		}
		fence = max(fence, c.Fence)
	}
	return Change{Head: &Head{Thread: t.head.Thread, Fence: fence}, Drop: true}, nil
}

// longestLease is the longest lease that anybody can mean. A claim that ends later is damaged.
const longestLease = 366 * 24 * time.Hour

// leased is when the claim of the thread is over. A claim that none of us wrote says nothing of that: then it is as long as leases last
// after the latest write, since a holder that is well renews its lease sooner.
func (t *turn) leased() time.Time {
	c := t.head.Claim
	until := c.Until
	if c.Dispatch == "" || c.Token == "" || c.Fence != t.head.Fence || until.IsZero() || until.After(t.now.Add(longestLease)) {
		until = t.head.UpdatedAt.Add(DefaultSuspendedLease)
	}
	return until.Add(t.skew)
}
