package mailbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// cancel ends a dispatch that is queued, and asks the holder of one that is claimed to stop: if it does not, the dispatch is cancelled when
// its lease is over. It reports whether the dispatch is cancelled, or will be.
func (q *queue) cancel(ctx context.Context, id, why string) (s state, ok bool, err error) {
	ok, err = q.change(ctx, Operation{Name: "cancel", Dispatch: id}, need{}, func(t *turn) (bool, error) {
		did := cancel(t, id, cmp.Or(clip(why), "cancelled"))
		s = t.state(id)
		return did, nil
	})
	return s, ok, err
}

func cancel(t *turn, id, why string) bool {
	d := t.dispatches[id]
	switch c := t.thread.Claim; {
	case d.Status == Queued:
		held := d.Holding
		d.LastError = why
		t.cancelled(d, endSettled)
		if held {
			t.released()
		} else {
			t.save()
		}
	case d.Status == Claimed && c != nil && c.Dispatch == id:
		if c.Stop == "" {
			c.Stop, t.recall = why, true
			t.save()
		}
	default:
		return d.Status == Cancelled
	}
	return true
}

// endWait ends a run that waits, and reports whether it has ended so.
func (q *queue) endWait(ctx context.Context, thread, run, why string) (ok bool, err error) {
	return q.change(ctx, Operation{Name: "cancel_run", Thread: thread}, need{runs: []string{run}}, func(t *turn) (bool, error) {
		return cancelRun(t, run, clip(why)), nil
	})
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

// replay queues a dead letter again, for a new run of that id.
func (q *queue) replay(ctx context.Context, id, newRun string) (s state, err error) {
	d, found, err := q.Dispatch(ctx, id)
	if err != nil || !found {
		return state{}, cmp.Or(err, wrap("dispatch", id, ErrNotFound))
	}
	_, err = q.change(ctx, Operation{Name: "replay", Thread: d.Thread, Dispatch: id}, need{dedupe: d.Dedupe}, func(t *turn) (bool, error) {
		if err := replay(t, id, newRun); err != nil {
			return false, about(id, err)
		}
		s = t.state(id)
		return true, nil
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
	case t.thread.Queued >= t.depth:
		return ErrFull
	case t.duplicate != "":
		return ErrExists
	}
	old := t.runs[d.RunID]
	d.Status, d.Attempts, d.Epoch, d.RunID, d.End = Queued, 0, t.thread.Epoch, newRun, ""
	d.AvailableAt, d.Holding = t.now, false
	t.putRun(Run{
		ID: newRun, Thread: d.Thread, Agent: old.Agent, Parent: old.Parent, Result: Result{Status: RunCreated}, Input: old.Input,
		RunTimes: RunTimes{CreatedAt: t.now},
	})
	d = cleared(d)
	t.put(d)
	t.sooner(d)
	return nil
}

// Discard makes a dead letter a cancelled dispatch, which is dropped like others.
func (q *queue) Discard(ctx context.Context, id string) error {
	found, err := q.change(ctx, Operation{Name: "discard", Dispatch: id}, need{}, func(t *turn) (bool, error) {
		d, ok := t.dispatches[id]
		switch {
		case !ok:
			return false, about(id, ErrNotFound)
		case d.Status == DeadLetter:
			d.Status = Cancelled
			t.put(d)
			t.save()
		case d.Status != Cancelled:
			return false, about(id, wrongToken())
		}
		return true, nil
	})
	if err == nil && !found {
		err = wrap("dispatch", id, ErrNotFound)
	}
	return err
}

// pause pauses a thread, or resumes it: nothing of a paused thread is claimed, and requests for it are queued. It returns the thread, and
// what the thread is claimed for; the holder is to be asked to give it back. A thread without a dispatch is [ErrNotFound].
func (q *queue) pause(ctx context.Context, thread string, pause bool) (s state, err error) {
	_, err = q.change(ctx, Operation{Name: "pause_thread", Thread: thread}, need{next: true}, func(t *turn) (bool, error) {
		if t.thread.Seq == 0 {
			return false, ErrNotFound
		}
		if pause == t.thread.PausedAt.IsZero() {
			t.pause(pause)
		}
		s = state{Thread: t.thread}
		if c := t.thread.Claim; c != nil {
			s = t.state(c.Dispatch)
		}
		return true, nil
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

// pauseTenant writes whether a tenant is paused; the empty one is all of them.
func (q *queue) pauseTenant(ctx context.Context, tenant string, pause bool) error {
	now, err := q.readTime(ctx)
	if err := cmp.Or(checkID("tenant", tenant), err); err != nil {
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
func (q *queue) Pauses(ctx context.Context) ([]string, error) {
	return list(ctx, q, store.Scan{Index: indexPause}, everything, func(ref store.Ref) (string, bool, error) { return ref.IndexKey, true, nil })
}

// maxDescription bounds the title and the metadata of a thread, in bytes together.
const maxDescription = 8 << 10

// Description is what front ends call a thread. Nil fields are left as they are.
type Description struct {
	Title *string
	// Metadata replaces all of the thread's: a JSON object.
	Metadata json.RawMessage
}

func (d Description) validate() error {
	n := len(d.Metadata)
	if d.Title != nil {
		n += len(*d.Title)
	}
	switch {
	case n > maxDescription:
		return fmt.Errorf("%w: %w: title and metadata have %d bytes, at most are %d", ErrInvalid, ErrTooLarge, n, maxDescription)
	case d.Metadata != nil && (!json.Valid(d.Metadata) || !strings.HasPrefix(strings.TrimSpace(string(d.Metadata)), "{")):
		return fmt.Errorf("%w: the metadata are not a JSON object", ErrInvalid)
	default:
		return nil
	}
}

// Describe changes the title and the metadata of a thread, and returns its record. A thread without a dispatch is [ErrNotFound].
func (q *queue) Describe(ctx context.Context, thread string, d Description) (out Thread, err error) {
	if err := d.validate(); err != nil {
		return Thread{}, wrap("thread", thread, err)
	}
	_, err = q.change(ctx, Operation{Name: "describe_thread", Thread: thread}, need{}, func(t *turn) (bool, error) {
		if t.thread.Seq == 0 {
			return false, ErrNotFound
		}
		if d.Title != nil {
			t.thread.Title = clip(*d.Title)
		}
		if d.Metadata != nil {
			t.thread.Metadata = string(d.Metadata)
		}
		t.save()
		out = t.thread
		return true, nil
	})
	return out, err
}
