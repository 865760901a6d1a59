package queue

import (
	"context"
	"fmt"
	"time"
)

// Extend moves the end of a lease to lease from now. A claim whose thread was interrupted is not extended; its holder may still write and
// settle until the lease is over.
func (q *Queue) Extend(ctx context.Context, h Hold, lease time.Duration) (c Claim, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpRenew, Thread: h.Thread, Dispatch: h.Dispatch})
	defer func() { end(false, err) }()
	err = q.transition(ctx, h.Thread, nil, need{dispatches: []string{h.Dispatch}}, func(t *turn) (err error) {
		c, err = extend(t, h, lease)
		return err
	})
	return c, err
}

func extend(t *turn, h Hold, lease time.Duration) (Claim, error) {
	if err := t.held(h); err != nil {
		return Claim{}, err
	}
	if d := t.dispatches[h.Dispatch]; d.Epoch < t.thread.Epoch {
		return *t.thread.Claim, &ConflictError{Expected: d.Epoch, Actual: t.thread.Epoch}
	}
	t.thread.Claim.Until = t.now.Add(lease)
	t.write(time.Time{}, 0)
	c := *t.thread.Claim
	c.Paused = !t.thread.PausedAt.IsZero()
	return c, nil
}

// held refuses a claim that is not that of the thread.
func (t *turn) held(h Hold) error {
	if _, ok := t.dispatches[h.Dispatch]; !ok {
		return about(h.Dispatch, ErrNotFound)
	}
	if c := t.thread.Claim; c == nil || c.Token != h.Token || c.Dispatch != h.Dispatch {
		return about(h.Dispatch, wrongToken())
	}
	return nil
}

// about names the dispatch in an error of a rule.
func about(dispatch string, err error) error { return fmt.Errorf("dispatch %.80q: %w", dispatch, err) }
