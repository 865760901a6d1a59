package mailbox

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// retention is one time that what [Retention] does not keep of threads is dropped, and what was.
type retention struct {
	*queue

	keep Retention
	now  time.Time
	// since is when a thread was changed, at the earliest, whose runs are counted, and whose messages are dropped.
	since                   time.Time
	threads, runs, messages int
}

// retainOverlap is for changes whose times are a little earlier than when they could be listed.
const retainOverlap = time.Minute

// retain drops threads, runs and messages. Runs and messages are counted in the threads that were changed since the last time.
func (m *Mailbox) retain(ctx context.Context, now time.Time) error {
	r := retention{queue: m.queue, keep: m.cfg.Retention, now: now}
	m.mu.Lock()
	r.since = m.collect.retained
	m.mu.Unlock()
	for _, step := range []func(context.Context) error{r.dropThreads, r.dropRuns, r.dropWithin} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if r.threads+r.runs+r.messages > 0 {
		m.cfg.Logger.InfoContext(ctx, "mailbox_retention", "threads", r.threads, "runs", r.runs, "messages", r.messages)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.collect.retained = now.Add(-retainOverlap)
	return nil
}

// before is so long ago, zero for no time.
func (r *retention) before(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return r.now.Add(-d)
}

// dropThreads drops threads, those first that were changed first. A thread that another thread names as its parent stays as long as that
// does.
func (r *retention) dropThreads(ctx context.Context) error {
	before, surplus := "", 0
	if r.keep.Threads > 0 {
		before = store.Number(r.before(r.keep.Threads).UnixMilli())
	}
	if r.keep.MaxThreads > 0 {
		counts, err := r.store.Count(ctx, indexIdle)
		if err != nil {
			return err
		}
		surplus = counts[""] - r.keep.MaxThreads
	}
	if surplus <= 0 && before == "" {
		return nil
	}
	for ref, err := range r.refs(ctx, store.Scan{Index: indexIdle}) {
		if err != nil {
			return err
		}
		surplus--
		if surplus < 0 && ref.IndexKey >= before {
			return nil
		}
		did, err := r.forget(ctx, ref.Thread, ref.IndexKey)
		if err != nil {
			return err
		}
		if did {
			r.threads++
		}
	}
	return nil
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

// dropRuns drops runs by age.
func (r *retention) dropRuns(ctx context.Context) error {
	if r.keep.Runs == 0 {
		return nil
	}
	before := r.before(r.keep.Runs)
	s := store.Scan{Index: indexRunsStatus, Group: string(RunDone), From: store.Number(-before.UnixMilli())}
	for ref, err := range r.refs(ctx, s) {
		if err == nil {
			err = r.dropRun(ctx, ref, before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropWithin drops runs by number, and messages, in the threads that were changed.
func (r *retention) dropWithin(ctx context.Context) error {
	bounds := threads.Retention{Before: r.before(r.keep.Messages), Count: r.keep.MaxMessages}
	if r.keep.MaxRuns == 0 && !bounds.Bounds() {
		return nil
	}
	for thread, err := range r.refs(ctx, store.Scan{Index: indexIdle, From: store.Number(r.since.UnixMilli())}) {
		if err == nil && r.keep.MaxRuns > 0 {
			err = r.dropSurplus(ctx, thread.Thread)
		}
		if err == nil && bounds.Bounds() {
			err = r.dropMessages(ctx, thread.Thread, bounds)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropSurplus drops the runs of a thread but for the latest.
func (r *retention) dropSurplus(ctx context.Context, thread string) error {
	kept := 0
	for ref, err := range r.refs(ctx, store.Scan{Index: indexRunsThread, Group: thread, Limit: r.keep.MaxRuns + 1}) {
		if err == nil && kept == r.keep.MaxRuns {
			err = r.dropRun(ctx, ref, time.Time{})
		} else {
			kept++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropRun drops a run that has ended, before that time if it is set, unless it is its thread's last one. Its messages stay.
func (r *retention) dropRun(ctx context.Context, ref store.Ref, before time.Time) error {
	data := store.One(kindRun, ref.Key)
	n, err := r.prune(ctx, ref.Thread, store.Query{Cells: []store.Range{data}}, func(t *Thread, s store.Snapshot, b *store.Batch) (int, error) {
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
	r.runs += n
	return err
}

// dropMessages drops the content of messages of a thread, as long as it is idle.
func (r *retention) dropMessages(ctx context.Context, thread string, bounds threads.Retention) error {
	for {
		glance, err := r.store.Read(ctx, thread, bounds.Glance())
		if err != nil || !bounds.Due(glance) {
			return err
		}
		n, err := r.prune(ctx, thread, bounds.Query(), func(t *Thread, s store.Snapshot, b *store.Batch) (int, error) {
			if t == nil || !t.idle() {
				return 0, nil // it was used again, or is gone
			}
			return bounds.AddTo(b, s)
		})
		if r.messages += n; err != nil || n == 0 {
			return err
		}
	}
}
