package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// Notifications that stay in the table, and how often older ones are deleted. A process that lags by more misses some.
const (
	keptNotices = 4096
	purgeEvery  = 1024
)

// group runs the jobs that wait, and those that come meanwhile, in one transaction.
func (w *writer) group(ctx context.Context) {
	t, err := w.begin(ctx)
	if err != nil {
		if !errors.Is(err, errIdle) {
			finish(w.takeAll(), store.NotApplied(err))
		}
		return
	}
	ctx = context.WithoutCancel(ctx) // what has begun is written
	var jobs []*job
	size := 0
	for len(jobs) < maxGroup {
		j := w.take(size)
		if j == nil {
			break
		}
		if err := w.run(ctx, t, j, len(jobs) > 0); err != nil {
			_ = t.script(ctx, "ROLLBACK") // there may be no transaction any more
			w.restore(jobs)               // nothing of them was written, and they did nothing wrong
			finish([]*job{j}, store.NotApplied(err))
			return
		}
		jobs = append(jobs, j)
		size += j.size
	}
	err = w.commit(ctx, t)
	if err == nil {
		w.store.hub.Notify(t.topics...)
		if t.events {
			w.store.hub.Notify(wait.StreamTopic(""))
		}
	}
	finish(jobs, err)
}

// run runs a job. A job that is refused changes nothing. Another error is one for which the transaction must be rolled back: SQLite may
// have done that already.
func (w *writer) run(ctx context.Context, t *tx, j *job, shares bool) error {
	if shares {
		if _, err := t.conn.exec(ctx, "SAVEPOINT job"); err != nil {
			return err
		}
	}
	revision, topics, events := t.revision, len(t.topics), t.events
	t.wrote, t.err = false, nil
	j.err = j.do(ctx, t)
	if j.err != nil {
		if !refused(j.err) || t.wrote && !shares {
			return j.err
		}
		t.revision, t.topics, t.events = revision, t.topics[:topics], events
	}
	if !shares {
		return nil
	}
	if j.err != nil {
		if _, err := t.conn.exec(ctx, "ROLLBACK TO job"); err != nil {
			return err
		}
	}
	_, err := t.conn.exec(ctx, "RELEASE job")
	return err
}

// begin takes the write lock as soon as other processes release it.
func (w *writer) begin(ctx context.Context) (*tx, error) {
	w.yield(ctx)
	err := retry(ctx, func() error {
		if waiting, _ := w.state(); !waiting {
			return errIdle
		}
		if err := w.flushing(ctx, w.hurried()); err != nil {
			return err
		}
		_, err := w.conn.exec(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			err = ErrClosed
		}
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
	if now := time.Now(); now.Sub(w.busy) > longHold {
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
	if t.err != nil {
		_ = t.script(ctx, "ROLLBACK") // there may be no transaction any more
		return t.err
	}
	w.last = t.revision
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	return nil
}

// counter returns the revision of the last batch.
func (c *conn) counter(ctx context.Context) (revision int64, err error) {
	found, err := c.row(ctx, []any{&revision}, "SELECT revision FROM counter")
	if err == nil && !found {
		err = errors.New("the file is damaged: the counter of revisions is missing")
	}
	return revision, err
}
