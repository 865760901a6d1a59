package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"time"
)

const (
	// tidyEvery is how often the writer gives space back while it writes, and how soon after the last write.
	tidyEvery = 50 * time.Millisecond
	// vacuumPages is how many pages one step gives back: writers wait for some milliseconds.
	vacuumPages = "256"
	// fewFree is how many free pages stay in any file. Of a larger one an eighth may be free: batches soon need it.
	fewFree = 64
	// keptLog is how large the write-ahead log stays, longLog how large it may become before writers wait until it is truncated.
	keptLog = 4 << 20
	longLog = 4 * keptLog

	// selectFree counts free pages, and all pages. A file from before space was given back has none that could be.
	selectFree = `SELECT iif(v.auto_vacuum = 2, f.freelist_count, 0), p.page_count
		FROM pragma_auto_vacuum v, pragma_freelist_count f, pragma_page_count p`
)

// tidier gives the space of deleted rows back. It belongs to the job that leads.
type tidier struct {
	timer *time.Timer
	// pending is set until a step is made, shrunk when pages were given back that the file has until a checkpoint.
	pending, shrunk bool
}

func (t *tidier) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// scheduleTidy has the next step made after tidyEvery. What fails is tried again then. Nothing cancels ctx.
func (w *writer) scheduleTidy(ctx context.Context) {
	if w.tidier.pending {
		return
	}
	w.tidier.pending = true
	w.tidier.timer = time.AfterFunc(tidyEvery, func() {
		_ = w.queue.Do(ctx, &job{Alone: true}, func() { // fails with ErrClosed after Close: nothing to do
			w.tidier.pending = false
			if more, err := w.shrink(ctx); more || err != nil {
				w.scheduleTidy(ctx)
			}
		})
	})
}

// shrink gives some free pages back, or when there are few truncates the write-ahead log. It reports whether there is more to do.
func (w *writer) shrink(ctx context.Context) (more bool, err error) {
	if err := w.store.place.check(); err != nil {
		return false, nil //nolint:nilerr // batches fail with it
	}
	var free, pages int64
	if _, err := w.conn.row(ctx, []any{&free, &pages}, selectFree); err != nil {
		return false, err
	}
	if free > fewFree && free*8 > pages {
		if err := w.flushing(ctx, false); err != nil {
			return false, err
		}
		w.tidier.shrunk = true
		return true, w.conn.rows(ctx, func(*sql.Rows) error { return nil }, "PRAGMA incremental_vacuum("+vacuumPages+")")
	}
	return w.truncate(ctx)
}

// truncate makes a checkpoint and truncates the write-ahead log, if it is large or the file has pages that were given back.
func (w *writer) truncate(ctx context.Context) (more bool, err error) {
	most := int64(keptLog)
	if w.queue.Len() > 1 {
		most = longLog
	}
	log, err := os.Stat(w.store.place.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() <= most && !w.tidier.shrunk {
		return false, nil
	}
	var busy bool
	var frames, done int
	_, err = w.conn.row(ctx, []any{&busy, &frames, &done}, "PRAGMA wal_checkpoint(TRUNCATE)")
	w.tidier.shrunk = w.tidier.shrunk && (busy || err != nil)
	return busy, err
}
