package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/sqlitefile"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

const (
	// Bounds of what shares a transaction.
	maxGroup = 128
	maxBytes = 8 << 20
	// How long this process works before it lets others have the file, if there are some. The pause is longer than that between two
	// attempts of theirs.
	longHold   = 25 * time.Millisecond
	breakTime  = 2 * sqlitefile.LastPause
	sharedTime = 10 * time.Second
	// How long jobs wait for other processes whose transaction another job has ended.
	againTime = time.Second
	// Notifications that stay in the table, and how often older ones are deleted. A process that lags by more misses some.
	keptNotices = 4096
	purgeEvery  = 1024
)

// change is what a job changes.
type change struct {
	// do changes the tables. It may be called again after a rollback. It returns a refusal, or an error that ends the transaction.
	do func(context.Context, *tx) error
	// soft changes do not wait for the flush.
	soft bool
	err  error
}

type job = sqlcore.Job[*change]

// writer runs changes, one transaction at a time, so that those which wait at the same time share a flush.
type writer struct {
	conn  *conn
	store *Store
	queue sqlcore.Queue[*change]
	// hasty is set when Close does not wait for other processes any more. Commits counts transactions.
	hasty   atomic.Bool
	commits atomic.Int64

	// The rest belongs to the job that leads. Unflushed is set while the connection does not flush.
	unflushed bool
	// last is the revision that this writer made last, busy when it began to work without a pause, ended when it ended, and shared until
	// when other processes are expected to write.
	last                int64
	busy, ended, shared time.Time
	tidier              tidier
}

func newWriter(c *conn, s *Store) *writer {
	return &writer{conn: c, store: s, queue: sqlcore.Queue[*change]{Jobs: maxGroup, Bytes: maxBytes}}
}

// write makes a change, of so many bytes, and returns after the COMMIT. While the change waits, it may be withdrawn by ctx.
func (w *writer) write(ctx context.Context, size int, c change) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	j := &job{Item: &c, Size: size}
	if err := w.queue.Do(ctx, j, func() { w.lead(ctx, j) }); err != nil {
		return err
	}
	return c.err
}

// close waits until the jobs are done. When ctx is done, those that wait for another process fail.
func (w *writer) close(ctx context.Context) (err error) {
	defer context.AfterFunc(ctx, func() { w.hasty.Store(true) })()
	closed := w.queue.Do(context.WithoutCancel(ctx), &job{Alone: true, Last: true}, func() {
		w.tidier.stop()
		err = w.conn.close()
	})
	if closed != nil {
		return closed
	}
	return err
}

// lead runs a job, and those that wait or come meanwhile, in one transaction. A job that ends it is left out of the next one, which has the
// others: they did nothing wrong. Their contexts may be done by then, so that the next ones wait for other processes for againTime only.
func (w *writer) lead(ctx context.Context, first *job) {
	jobs := w.transaction(ctx, []*job{first})
	ctx = context.WithoutCancel(ctx)
	if len(jobs) > 0 {
		limited, cancel := context.WithTimeout(ctx, againTime)
		defer cancel()
		for len(jobs) > 0 {
			jobs = w.transaction(limited, jobs)
		}
	}
	w.ended = time.Now()
	w.scheduleTidy(ctx)
}

// errPanicked is the error of jobs in whose transaction a change panicked.
var errPanicked = errors.New("a change in the same transaction panicked")

// transaction runs jobs, and those that wait, and returns those that are to be run again.
func (w *writer) transaction(ctx context.Context, jobs []*job) (again []*job) {
	t, err := w.begin(ctx, jobs)
	if err != nil {
		finish(jobs, store.NotApplied(err))
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what has begun is written
	err = errPanicked                // until it is known
	defer func() {
		if err != nil {
			_ = t.script(ctx, "ROLLBACK") // there may be no transaction any more
		}
		finish(jobs, err)
	}()
	size := 0
	for i := 0; ; i++ {
		if i == len(jobs) {
			j := w.queue.Next(len(jobs), size, func(c *change) bool { return c.soft || !w.unflushed })
			if j == nil {
				break
			}
			jobs = append(jobs, j)
		}
		if failed := w.run(ctx, t, jobs[i].Item, i > 0); failed != nil {
			err = store.NotApplied(failed)
			jobs, again = jobs[i:i+1], slices.Concat(jobs[:i], jobs[i+1:])
			return again
		}
		size += jobs[i].Size
	}
	if err = w.commit(ctx, t); err == nil {
		w.store.hub.Notify(t.topics...)
		if t.events {
			w.store.hub.Notify(wait.StreamTopic(""))
		}
	}
	return nil
}

// finish releases the callers of jobs. With an error nothing of them was written, unless COMMIT returned it.
func finish(jobs []*job, err error) {
	for _, j := range jobs {
		if err != nil {
			j.Item.err = err
		}
		j.Done()
	}
}

// run makes a change. One that is refused changes nothing. Another error is one for which the transaction must be rolled back: SQLite may
// have done that already.
func (w *writer) run(ctx context.Context, t *tx, c *change, shares bool) error {
	if shares {
		if _, err := t.conn.exec(ctx, "SAVEPOINT job"); err != nil {
			return err
		}
	}
	revision, topics, events := t.revision, len(t.topics), t.events
	t.wrote, t.err = false, nil
	c.err = c.do(ctx, t)
	if c.err != nil {
		if !refused(c.err) || t.wrote && !shares {
			return c.err
		}
		t.revision, t.topics, t.events = revision, t.topics[:topics], events
	}
	if !shares {
		return nil
	}
	if c.err != nil {
		if _, err := t.conn.exec(ctx, "ROLLBACK TO job"); err != nil {
			return err
		}
	}
	_, err := t.conn.exec(ctx, "RELEASE job")
	return err
}

// begin takes the write lock as soon as other processes release it.
func (w *writer) begin(ctx context.Context, jobs []*job) (*tx, error) {
	w.yield(ctx)
	hurried := func(c *change) bool { return c != nil && !c.soft }
	err := sqlitefile.Retry(ctx, sqlitefile.LastPause, func() error {
		if w.hasty.Load() {
			return ErrClosed
		}
		hurry := w.queue.Any(hurried) || slices.ContainsFunc(jobs, func(j *job) bool { return hurried(j.Item) })
		if err := w.flushing(ctx, hurry); err != nil {
			return err
		}
		_, err := w.conn.exec(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		return nil, err
	}
	t := &tx{conn: w.conn}
	err = w.store.place.check()
	if err == nil {
		t.revision, err = t.counter(ctx)
	}
	if err != nil {
		_ = t.script(ctx, "ROLLBACK") // the first error is the one to return
		return nil, err
	}
	if t.revision != w.last {
		w.shared = time.Now().Add(sharedTime)
	}
	w.last = t.revision
	return t, nil
}

// yield pauses when this writer had the file for long and other processes write, too.
func (w *writer) yield(ctx context.Context) {
	switch now := time.Now(); {
	case now.Sub(w.ended) > sqlitefile.LastPause:
		w.busy = now
	case now.Sub(w.busy) > longHold:
		if now.Before(w.shared) {
			_ = wait.For(ctx, breakTime)
		}
		w.busy = now
	}
}

// flushing sets whether the next transaction is flushed. A flush includes what earlier transactions did not flush.
func (w *writer) flushing(ctx context.Context, on bool) error {
	if on != w.unflushed {
		return nil
	}
	level := "NORMAL" // in WAL mode that flushes only before checkpoints
	if on {
		level = "FULL"
	}
	if err := w.conn.script(ctx, "PRAGMA synchronous = "+level); err != nil {
		return err
	}
	w.unflushed = !on
	return nil
}

// commit writes what the jobs have in common, and commits.
func (w *writer) commit(ctx context.Context, t *tx) error {
	t.err = nil
	if t.revision != w.last {
		t.run(ctx, "UPDATE counter SET revision = ?", t.revision)
	}
	slices.Sort(t.topics)
	t.topics = slices.Compact(t.topics)
	for _, topic := range t.topics { // for other processes
		id := t.insert(ctx, "INSERT INTO notice (topic, origin) VALUES (?, ?)", blob(topic), w.store.origin)
		if id%purgeEvery == 0 {
			t.run(ctx, "DELETE FROM notice WHERE id <= ?", id-keptNotices)
		}
	}
	t.run(ctx, "COMMIT")
	if t.err == nil {
		w.last = t.revision
		w.commits.Add(1)
	}
	return t.err
}
