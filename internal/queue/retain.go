package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// Retain bounds what is kept of threads in which nothing is queued, executed, waiting or paused. Zero fields bound nothing.
type Retain struct {
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

// Retained is what was dropped.
type Retained struct{ Threads, Runs, Messages int }

// Retain drops what is too old, or too much. A thread that another thread names as its parent stays as long as that does.
func (q *Queue) Retain(ctx context.Context, r Retain) (out Retained, err error) {
	if out.Threads, err = q.retainThreads(ctx, &r); err != nil {
		return out, fmt.Errorf("mailbox: retention of threads: %w", err)
	}
	if out.Runs, err = q.retainRuns(ctx, &r); err != nil {
		return out, fmt.Errorf("mailbox: retention of runs: %w", err)
	}
	if out.Messages, err = q.retainMessages(ctx, &r); err != nil {
		return out, fmt.Errorf("mailbox: retention of messages: %w", err)
	}
	return out, nil
}

func (q *Queue) retainThreads(ctx context.Context, r *Retain) (n int, err error) {
	surplus := 0
	if r.Threads > 0 {
		counts, err := q.store.Count(ctx, indexIdle)
		if err != nil {
			return 0, err
		}
		surplus = counts[""] - r.Threads
	}
	s := store.Scan{Index: indexIdle}
	if surplus <= 0 {
		if r.ThreadsBefore.IsZero() {
			return 0, nil
		}
		s.To = store.Number(r.ThreadsBefore.UnixMilli())
	}
	before, seen := store.Number(r.ThreadsBefore.UnixMilli()), 0
	err = q.scan(ctx, s, min(r.Limit, maxPage), func(ref store.Ref) error {
		old := !r.ThreadsBefore.IsZero() && ref.IndexKey < before
		seen++
		if !old && seen > surplus || n >= r.Limit {
			return errFull
		}
		dropped, err := q.forget(ctx, ref.Thread, ref.IndexKey)
		if dropped {
			n++
		}
		return err
	})
	return n, err
}

// forget drops a thread without a trace, if it was not changed since it was listed and no thread is below it.
func (q *Queue) forget(ctx context.Context, thread, changed string) (dropped bool, err error) {
	below, err := q.store.Scan(ctx, store.Scan{Index: indexChild, Group: thread, Limit: 1})
	if err != nil || len(below) > 0 {
		return false, err
	}
	ctx, end := q.Begin(ctx, Operation{Name: OpDrop, Thread: thread})
	defer func() { end(!dropped, err) }()
	ids, err := q.idsOf(ctx, thread)
	if err != nil {
		return false, err
	}
	_, err = store.Update(ctx, q.store, thread, store.Query{Cells: []store.Range{store.One(kindThread, "")}}, func(s store.Snapshot) (*store.Batch, error) {
		dropped = false
		value, ok := s.Cell(kindThread, "")
		var t Thread
		if !ok || !decodes(thread, cellID{kind: kindThread}, value, &t) || !t.idle() || changedThread(&t) != changed {
			return nil, nil // it was used again, or is gone
		}
		dropped = true
		return &store.Batch{Drop: true}, nil
	})
	if errors.Is(err, ErrUnknownOutcome) { // it is listed again if it is still there
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return dropped, q.dropEvents(ctx, ids...)
}

func (q *Queue) retainRuns(ctx context.Context, r *Retain) (n int, err error) {
	if !r.RunsBefore.IsZero() {
		s := store.Scan{Index: indexRunsStatus, Group: string(RunDone), From: store.Number(-r.RunsBefore.UnixMilli()), Values: true}
		err = q.scan(ctx, s, min(r.Limit, maxPage), func(ref store.Ref) error {
			if n >= r.Limit {
				return errFull
			}
			did, err := q.dropRun(ctx, ref.Thread, ref.Key, r.RunsBefore)
			n += did
			return err
		})
	}
	if r.Runs <= 0 || err != nil {
		return n, err
	}
	s := store.Scan{Index: indexIdle, From: store.Number(r.Since.UnixMilli())}
	err = q.scan(ctx, s, maxPage, func(thread store.Ref) error {
		if n >= r.Limit {
			return errFull
		}
		seen := 0
		return q.scan(ctx, store.Scan{Index: indexRunsThread, Group: thread.Thread}, r.Runs+1, func(ref store.Ref) error {
			if n >= r.Limit {
				return errFull
			}
			seen++
			if seen <= r.Runs {
				return nil
			}
			did, err := q.dropRun(ctx, ref.Thread, ref.Key, time.Time{})
			n += did
			return err
		})
	})
	return n, err
}

// dropRun drops a run that has ended, before that time if it is set, unless it is its thread's last one. Its messages stay.
func (q *Queue) dropRun(ctx context.Context, thread, id string, before time.Time) (n int, err error) {
	cells := store.Query{Cells: []store.Range{store.One(kindThread, ""), store.One(kindRun, id)}}
	_, err = store.Update(ctx, q.store, thread, cells, func(s store.Snapshot) (*store.Batch, error) {
		n = 0
		var t Thread
		var run Run
		record, _ := s.Cell(kindThread, "")
		value, ok := s.Cell(kindRun, id)
		if !ok || !decodes(thread, cellID{kind: kindThread}, record, &t) || !decodes(thread, cellID{kindRun, id}, value, &run) {
			return nil, nil // it is gone, or is damaged, which a read reports
		}
		if run.Status != RunDone || t.Latest.ID == id || t.Queued > 0 || !before.IsZero() && !run.FinishedAt.Before(before) {
			return nil, nil
		}
		n = 1
		return &store.Batch{Delete: []store.Range{store.One(kindRun, id), store.One(kindRunData, id)}}, nil
	})
	return n, err
}

func (q *Queue) retainMessages(ctx context.Context, r *Retain) (n int, err error) {
	bounds := threads.Retention{Before: r.MessagesBefore, Count: r.Messages}
	if !bounds.Bounds() {
		return 0, nil
	}
	s := store.Scan{Index: indexIdle, From: store.Number(r.Since.UnixMilli())}
	err = q.scan(ctx, s, maxPage, func(ref store.Ref) error {
		for dropped := 1; dropped > 0; n += dropped {
			glance, err := q.store.Read(ctx, ref.Thread, bounds.Glance())
			if err != nil || !bounds.Due(glance) {
				return err
			}
			if dropped, err = q.dropMessages(ctx, ref.Thread, bounds); err != nil {
				return wrap("thread", ref.Thread, err)
			}
		}
		return nil
	})
	return n, err
}

// dropMessages drops the content of messages of a thread, if it is idle.
func (q *Queue) dropMessages(ctx context.Context, thread string, r threads.Retention) (n int, err error) {
	query := r.Query()
	query.Cells = append(query.Cells, store.One(kindThread, ""))
	_, err = store.Update(ctx, q.store, thread, query, func(s store.Snapshot) (*store.Batch, error) {
		n = 0
		var t Thread
		record, ok := s.Cell(kindThread, "")
		if !ok || !decodes(thread, cellID{kind: kindThread}, record, &t) || !t.idle() {
			return nil, nil // it was used again, or is gone
		}
		b := &store.Batch{}
		if n, err = r.AddTo(b, s); err != nil || n == 0 {
			return nil, err
		}
		return b, nil
	})
	if errors.Is(err, ErrUnknownOutcome) { // what is still there is dropped the next time
		return 0, nil
	}
	return n, err
}

// decodes reports whether a cell can be decoded.
func decodes(thread string, id cellID, value []byte, into any) bool {
	return decode(thread, id, value, into) == nil
}
