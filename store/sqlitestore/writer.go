package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Bounds of a group of jobs, and how long the writer works before it lets other processes have the file, if there are some. The pause is
// longer than that between two attempts of theirs.
const (
	maxGroup   = 128
	maxBytes   = 8 << 20
	longHold   = 25 * time.Millisecond
	breakTime  = 2 * lastPause
	sharedTime = 10 * time.Second
)

// job is a change that waits for the writer.
type job struct {
	// do changes the tables. It may be called again after a rollback. It returns a refusal, or an error that ends the transaction.
	do func(context.Context, *tx) error
	// over returns the cause when the caller's context is done.
	over func() error
	// soft jobs do not wait for the flush.
	soft bool
	size int
	done chan struct{}
	err  error
}

// writer runs the jobs in groups, one transaction each, so that jobs which wait at the same time share a flush.
type writer struct {
	conn  *conn
	store *Store

	mu     sync.Mutex
	queue  []*job
	closed bool
	// commits counts transactions.
	commits int

	wake  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
	err   error

	// The rest belongs to the goroutine. Unflushed is set while the connection does not flush.
	unflushed bool
	// last is the revision that this writer made last, busy when it began to work without a pause, shared until when other processes are
	// expected to write.
	last         int64
	busy, shared time.Time
	tidier       tidier
}

func newWriter(ctx context.Context, c *conn, s *Store) *writer {
	w := &writer{conn: c, store: s, wake: make(chan struct{}, 1), ended: make(chan struct{}), tidier: newTidier()}
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	go w.loop(ctx)
	return w
}

// write has the writer run a job, and returns after the COMMIT. A job whose ctx is done before it began is not run.
func (w *writer) write(ctx context.Context, j *job) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	j.done, j.over = make(chan struct{}), func() error { return context.Cause(ctx) }
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	w.queue = append(w.queue, j)
	w.mu.Unlock()
	w.poke()
	select {
	case <-j.done:
	case <-ctx.Done():
		if w.withdraw(j) {
			return context.Cause(ctx)
		}
		<-j.done // it is being written
	}
	return j.err
}

// withdraw removes a job that was not begun, and reports whether it did.
func (w *writer) withdraw(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.queue, j)
	if at >= 0 {
		w.queue = slices.Delete(w.queue, at, at+1)
	}
	return at >= 0
}

func (w *writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close waits until the jobs are done. When ctx is done, those that wait for another process fail.
func (w *writer) close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.poke()
	defer context.AfterFunc(ctx, w.stop)()
	<-w.ended
	w.stop()
	return w.err
}

func (w *writer) loop(ctx context.Context) {
	defer close(w.ended)
	for {
		switch waiting, closed := w.state(); {
		case waiting:
			w.group(ctx)
			w.tidier.schedule()
			select {
			case <-w.tidier.due.C:
				w.tidy(ctx)
			default:
			}
		case closed:
			w.tidier.due.Stop()
			w.err = w.conn.close()
			return
		default:
			select {
			case <-w.wake:
				w.busy = time.Now()
			case <-w.tidier.due.C:
				w.tidy(ctx)
			}
		}
	}
}

func (w *writer) state() (waiting, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0, w.closed
}

// take removes the first job from the queue. Jobs that need a flush wait for a transaction that has one.
func (w *writer) take(size int) *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 {
		j := w.queue[0]
		if size > 0 && size+j.size > maxBytes || w.unflushed && !j.soft {
			return nil
		}
		w.queue = slices.Delete(w.queue, 0, 1)
		if j.err = j.over(); j.err == nil {
			return j
		}
		close(j.done)
	}
	return nil
}

func (w *writer) takeAll() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := w.queue
	w.queue = nil
	return jobs
}

// restore puts jobs back at the front of the queue.
func (w *writer) restore(jobs []*job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(slices.Clone(jobs), w.queue...)
}

// hurried reports whether a waiting job needs a flush.
func (w *writer) hurried() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.queue, func(j *job) bool { return !j.soft })
}

// finish releases the callers of jobs. With an error nothing of them was written, unless COMMIT returned it.
func finish(jobs []*job, err error) {
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
}

// errIdle reports that all callers went while the writer waited for another process.
var errIdle = errors.New("no job waits")
