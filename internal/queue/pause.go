package queue

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Pause pauses a thread, or resumes it: nothing of a paused thread is claimed, and requests for it are queued. It returns the thread, and
// what the thread is claimed for; the holder is to be asked to give it back. A thread without a dispatch is [ErrNotFound].
func (q *Queue) Pause(ctx context.Context, thread string, pause bool) (s State, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpPause, Thread: thread})
	defer func() { end(false, err) }()
	err = q.transition(ctx, thread, nil, need{next: true}, func(t *turn) error {
		if t.thread.Seq == 0 {
			return ErrNotFound
		}
		if pause == t.thread.PausedAt.IsZero() {
			t.pause(pause)
		}
		s = State{Thread: t.thread}
		if c := t.thread.Claim; c != nil {
			s = t.state(c.Dispatch)
		}
		return nil
	})
	return s, err
}

func (t *turn) pause(pause bool) {
	t.thread.PausedAt = time.Time{}
	if pause {
		t.thread.PausedAt, t.recall = t.now, true
	}
	switch {
	case t.thread.Claim != nil:
		t.save()
	case pause:
		t.write(time.Time{}, 0)
	default:
		t.free()
	}
}

// pauseThread is the store's thread of what is paused. No thread of the mailbox has such a name: it is not valid UTF-8.
const (
	pauseThread = "\xffpause"
	kindPause   = "pause"
	indexPause  = "pause" // (, tenant)
)

// PauseTenant writes whether a tenant is paused; the empty one is all of them.
func (q *Queue) PauseTenant(ctx context.Context, tenant string, pause bool) error {
	if err := CheckID("tenant", tenant); err != nil {
		return wrap("pause of tenant", tenant, err)
	}
	now, err := q.Time(ctx)
	if err != nil {
		return wrap("pause of tenant", tenant, err)
	}
	b := store.Batch{Thread: pauseThread, Base: store.AnyRevision, Notify: []string{topicDue}}
	if pause {
		b.Put = []store.Cell{{
			Kind: kindPause, Key: tenant, Value: now.AppendFormat(nil, time.RFC3339Nano), Index: []store.IndexKey{{Name: indexPause, Key: tenant}},
		}}
	} else {
		b.Delete = []store.Range{store.One(kindPause, tenant)}
	}
	_, err = store.ApplySurely(ctx, q.store, b)
	return wrap("pause of tenant", tenant, err)
}

// Pauses lists the tenants that are paused. An empty one is for all.
func (q *Queue) Pauses(ctx context.Context) (tenants []string, err error) {
	err = q.scan(ctx, store.Scan{Index: indexPause}, maxPage, func(ref store.Ref) error {
		tenants = append(tenants, ref.IndexKey)
		return nil
	})
	return tenants, err
}
