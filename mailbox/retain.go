package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// retainQuery bounds what is kept of threads in which nothing is queued, executed, waiting or paused. Zero fields bound nothing.
type retainQuery struct {
	// ThreadsBefore is the time before which a thread was changed that is dropped, Threads how many threads are kept: those that were
	// changed last.
	ThreadsBefore time.Time
	Threads       int
	// RunsBefore is the time before which a run has ended that is dropped, Runs how many runs of a thread are kept: the latest. The
	// thread's last run always stays.
	RunsBefore time.Time
	Runs       int
	// MessagesBefore and Messages are as in thread.Retention.
	MessagesBefore time.Time
	Messages       int
	// Since is the time since which a thread was changed whose runs are counted, and whose messages are dropped.
	Since time.Time
	// Limit is how many threads and runs are dropped at most.
	Limit int
}

// retained is what was dropped.
type retained struct{ Threads, Runs, Messages int }

// retainOnce drops what is too old, or too much. A thread that another thread names as its parent stays as long as that does.
func (q *queue) retainOnce(ctx context.Context, r retainQuery) (out retained, err error) {
	for _, step := range []func(context.Context, *retainQuery, *retained) error{q.retainThreads, q.retainRuns, q.retainWithin} {
		if err := step(ctx, &r, &out); err != nil {
			return out, fmt.Errorf("mailbox: retention: %w", err)
		}
	}
	return out, nil
}

// retainThreads drops threads, those first that were changed first.
func (q *queue) retainThreads(ctx context.Context, r *retainQuery, out *retained) error {
	surplus := 0
	if r.Threads > 0 {
		counts, err := q.store.Count(ctx, indexIdle)
		if err != nil {
			return err
		}
		surplus = counts[""] - r.Threads
	}
	if surplus <= 0 && r.ThreadsBefore.IsZero() {
		return nil
	}
	before, seen := store.Number(r.ThreadsBefore.UnixMilli()), 0
	return q.scan(ctx, store.Scan{Index: indexIdle}, min(r.Limit, maxPage), func(ref store.Ref) error {
		old := !r.ThreadsBefore.IsZero() && ref.IndexKey < before
		seen++
		if !old && seen > surplus || out.Threads >= r.Limit {
			return errFull
		}
		did, err := q.forget(ctx, ref.Thread, ref.IndexKey)
		if did {
			out.Threads++
		}
		return err
	})
}

// forget drops a thread without a trace, if it was not changed since it was listed and no thread is below it.
func (q *queue) forget(ctx context.Context, thread, changed string) (bool, error) {
	below, err := q.store.Scan(ctx, store.Scan{Index: indexChild, Group: thread, Limit: 1})
	if err != nil || len(below) > 0 {
		return false, err
	}
	did, err := q.drop(ctx, thread, func(s store.Snapshot) (*store.Batch, error, error) {
		var t Thread
		if ok, err := cell(thread, s, kindThread, "", &t); !ok || err != nil || !t.idle() || changedThread(&t) != changed {
			return nil, nil, nil //nolint:nilerr // it was used again, or is gone; a read returns what is wrong
		}
		return &store.Batch{Drop: true}, nil, nil
	})
	if errors.Is(err, ErrUnknownOutcome) {
		return false, nil // it is listed again if it is still there
	}
	return did, err
}

// retainRuns drops runs by age.
func (q *queue) retainRuns(ctx context.Context, r *retainQuery, out *retained) error {
	if r.RunsBefore.IsZero() {
		return nil
	}
	s := store.Scan{Index: indexRunsStatus, Group: string(RunDone), From: store.Number(-r.RunsBefore.UnixMilli())}
	return q.scan(ctx, s, min(r.Limit, maxPage), func(ref store.Ref) error { return q.dropRun(ctx, ref, r, r.RunsBefore, out) })
}

// retainWithin drops runs by number, and messages, in the threads that were changed.
func (q *queue) retainWithin(ctx context.Context, r *retainQuery, out *retained) error {
	bounds := threads.Retention{Before: r.MessagesBefore, Count: r.Messages}
	if r.Runs <= 0 && !bounds.Bounds() {
		return nil
	}
	return q.scan(ctx, store.Scan{Index: indexIdle, From: store.Number(r.Since.UnixMilli())}, maxPage, func(thread store.Ref) error {
		if err := q.dropSurplus(ctx, thread.Thread, r, out); err != nil || !bounds.Bounds() {
			return err
		}
		return q.dropMessages(ctx, thread.Thread, bounds, out)
	})
}

func (q *queue) dropSurplus(ctx context.Context, thread string, r *retainQuery, out *retained) error {
	if r.Runs <= 0 {
		return nil
	}
	seen := 0
	return q.scan(ctx, store.Scan{Index: indexRunsThread, Group: thread}, r.Runs+1, func(ref store.Ref) error {
		seen++
		if seen <= r.Runs {
			return nil
		}
		return q.dropRun(ctx, ref, r, time.Time{}, out)
	})
}

// dropRun drops a run that has ended, before that time if it is set, unless it is its thread's last one. Its messages stay.
func (q *queue) dropRun(ctx context.Context, ref store.Ref, r *retainQuery, before time.Time, out *retained) error {
	if out.Runs >= r.Limit {
		return errFull
	}
	data := store.One(kindRun, ref.Key)
	n, err := q.prune(ctx, ref.Thread, store.Query{Cells: []store.Range{data}}, func(t *Thread, s store.Snapshot, b *store.Batch) (int, error) {
		var run Run
		if ok, err := cell(ref.Thread, s, kindRun, ref.Key, &run); t == nil || !ok || err != nil {
			return 0, nil //nolint:nilerr // it is gone, or is damaged, which a read reports
		}
		if run.Status != RunDone || t.Latest.ID == run.ID || t.Queued > 0 || !before.IsZero() && !run.FinishedAt.Before(before) {
			return 0, nil
		}
		b.Delete = []store.Range{data, store.One(kindRunData, run.ID)}
		return 1, nil
	})
	out.Runs += n
	return err
}

// dropMessages drops the content of messages of a thread, as long as it is idle.
func (q *queue) dropMessages(ctx context.Context, thread string, bounds threads.Retention, out *retained) error {
	for {
		glance, err := q.store.Read(ctx, thread, bounds.Glance())
		if err != nil || !bounds.Due(glance) {
			return err
		}
		n, err := q.prune(ctx, thread, bounds.Query(), func(t *Thread, s store.Snapshot, b *store.Batch) (int, error) {
			if t == nil || !t.idle() {
				return 0, nil // it was used again, or is gone
			}
			return bounds.AddTo(b, s)
		})
		if out.Messages += n; err != nil || n == 0 {
			return err
		}
	}
}
