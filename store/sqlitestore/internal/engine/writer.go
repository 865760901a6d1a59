package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// What a group may come to, and how long the writer works on before it lets other processes have the
// file, if there are any. Their tries are not further apart than the break is long.
const (
	maxGroup   = 128
	longHold   = 25 * time.Millisecond
	breakTime  = 2 * lastWait
	sharedTime = 10 * time.Second
)

// writer writes what is asked for in groups, one transaction each, so that many share one flush. Who asks
// while nobody else does writes by itself, which saves two changes of goroutine; what comes
// meanwhile is written by a goroutine of the writer's.
type writer struct {
	conn *Conn
	// look says whether the file is where it was.
	look func() error

	mu     sync.Mutex
	queue  []*job
	closed bool
	// busy says that somebody has the connection.
	busy bool
	// commits counts transactions, and soft those of them that were not flushed.
	commits, soft int
	// wake has an entry when there is something to do. stop ends the waiting for other processes;
	// ended is closed when the goroutine has ended, with err.
	wake  chan struct{}
	wait  context.Context //nolint:containedctx // the goroutine's own
	stop  context.CancelFunc
	ended chan struct{}
	err   error

	// since is when it began to work without a break, shared until when it takes other processes for
	// alive. They are, like the connection, of whoever is busy.
	since, shared time.Time
	// unflushed says that the connection does not flush now.
	unflushed bool
}

// job is one write.
type job struct {
	do func(*Conn) error
	// soft says that nobody waits for the disk.
	soft bool
	done chan struct{}
	err  error
	// panicked is what do panicked with.
	panicked any
}

func newWriter(ctx context.Context, conn *Conn, look func() error) *writer {
	w := &writer{conn: conn, look: look, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	w.wait, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	go w.loop()
	return w
}

func (w *writer) write(ctx context.Context, soft bool, do func(*Conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	j := &job{do: do, soft: soft, done: make(chan struct{})}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	w.queue = append(w.queue, j)
	alone := !w.busy
	w.busy = true
	w.mu.Unlock()
	if alone {
		w.lead()
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if w.withdraw(j) {
			return context.Cause(ctx)
		}
		<-j.done // it is being written
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

// lead writes what is queued on the goroutine of whoever asked, unless another process has the file: to
// wait for that is the writer's.
func (w *writer) lead() {
	defer func() {
		if w.leave() {
			w.poke()
		}
	}()
	w.group(w.beginNow)
}

// leave gives the connection back, and says whether there is something to do.
func (w *writer) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	if len(w.queue) == 0 {
		w.since = time.Time{}
	}
	return w.closed || len(w.queue) > 0
}

// enter takes the connection if there are jobs, and says whether the writer is to end when there are
// none. Nobody takes it while another one has it, who wakes the writer at the end.
func (w *writer) enter() (some, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return false, false
	}
	w.busy = len(w.queue) > 0
	return w.busy, w.closed
}

func (w *writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// withdraw takes back a job that was not begun, and says whether it did.
func (w *writer) withdraw(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.queue, j)
	if at < 0 {
		return false
	}
	w.queue = slices.Delete(w.queue, at, at+1)
	return true
}

// take takes jobs out of the queue. Those that are to be flushed wait for a group that is.
func (w *writer) take(most int) []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	most = min(most, len(w.queue))
	if w.unflushed {
		if hard := slices.IndexFunc(w.queue[:most], func(j *job) bool { return !j.soft }); hard >= 0 {
			most = hard
		}
	}
	taken := slices.Clone(w.queue[:most])
	w.queue = slices.Delete(w.queue, 0, most)
	return taken
}

// waiting says whether there are jobs.
func (w *writer) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

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

func (w *writer) loop() {
	defer close(w.ended)
	for {
		some, closed := w.enter()
		switch {
		case some:
			w.group(w.begin)
			w.leave()
		case closed:
			w.err = w.conn.close()
			return
		default:
			<-w.wake
		}
	}
}

// group writes what is queued, in one transaction.
func (w *writer) group(begin func() error) {
	if err := begin(); err != nil {
		if !errors.Is(err, errIdle) {
			finish(w.take(maxGroup), err)
		}
		return
	}
	var group []*job
	broken := errGone
	defer func() { // also if a job ended the goroutine
		if broken != nil {
			_, _ = w.conn.Exec("ROLLBACK") // there is none any more after some errors
			w.conn.epoch++
		}
		finish(group, broken)
	}()
	for len(group) < maxGroup {
		taken := w.take(maxGroup - len(group))
		if len(taken) == 0 {
			break
		}
		first := len(group)
		group = append(group, taken...)
		for i, j := range taken {
			if err := w.apply(j, first+i > 0); err != nil {
				broken = err
				return
			}
		}
	}
	_, broken = w.conn.Exec("COMMIT")
	w.mu.Lock()
	w.commits++
	if w.unflushed {
		w.soft++
	}
	w.mu.Unlock()
}

// finish tells whoever waits. With an error nothing was kept.
func finish(group []*job, err error) {
	for _, j := range group {
		if err != nil && !errors.Is(j.err, err) {
			j.err = errors.Join(err, j.err)
		}
		close(j.done)
	}
}

var (
	// errIdle says that whoever waited for the file has gone, or that somebody else waits for it.
	errIdle = errors.New("nothing to write")
	errGone = errors.New("what was to be written ended its goroutine")
)

// beginNow takes the write lock if no other process has it.
func (w *writer) beginNow() error {
	err := w.harden()
	if err == nil {
		_, err = w.conn.Exec("BEGIN IMMEDIATE")
	}
	switch {
	case inTheWay(err):
		return errIdle
	case err != nil:
		return err
	}
	return w.begun()
}

// begin takes the write lock, as soon as other processes let it.
func (w *writer) begin() error {
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if now := time.Now(); now.Sub(w.since) > longHold {
		if now.Before(w.shared) {
			pause(w.wait, breakTime)
		}
		w.since = now
	}
	err := retry(w.wait, func() error {
		if !w.waiting() {
			return errIdle
		}
		if err := w.harden(); err != nil {
			return err
		}
		_, err := w.conn.Exec("BEGIN IMMEDIATE")
		return err
	})
	if w.wait.Err() != nil && err != nil {
		return ErrClosed
	}
	if err != nil {
		return err
	}
	return w.begun()
}

// begun looks whether the file is where it was, and whether others have written since the last transaction.
func (w *writer) begun() error {
	others, err := w.conn.foreign()
	if err != nil {
		err = fmt.Errorf("look for other processes: %w", err)
	} else {
		err = w.look()
	}
	if err != nil {
		_, _ = w.conn.Exec("ROLLBACK") // the first error is the one to tell
		return err
	}
	if others {
		w.conn.epoch++
		w.shared = time.Now().Add(sharedTime)
	}
	return nil
}

// harden has the next transaction flushed, unless nobody waits for that. A flush takes what was
// not flushed before along.
func (w *writer) harden() error {
	w.mu.Lock()
	soft := !slices.ContainsFunc(w.queue, func(j *job) bool { return !j.soft })
	w.mu.Unlock()
	if soft == w.unflushed {
		return nil
	}
	level := "FULL"
	if soft {
		level = "NORMAL" // in a log, that is at checkpoints only
	}
	if err := w.conn.Script("PRAGMA synchronous = " + level); err != nil {
		return err
	}
	w.unflushed = soft
	return nil
}

// apply does one job of a group. A job that fails is undone alone if there are others before it. The error
// is one for which the whole group has to go.
func (w *writer) apply(j *job, shares bool) error {
	if shares {
		if _, err := w.conn.Exec("SAVEPOINT job"); err != nil {
			return err
		}
	}
	w.conn.wrote = false
	j.run(w.conn)
	switch {
	case j.err == nil && j.panicked == nil:
	case !w.conn.wrote:
	case code(j.err) != 0 && code(j.err) != codeConstraint:
		return j.err // SQLite may have undone everything
	case shares:
		w.conn.epoch++
		if _, err := w.conn.Exec("ROLLBACK TO job"); err != nil {
			return err
		}
	default:
		return w.again()
	}
	if shares {
		_, err := w.conn.Exec("RELEASE job")
		return err
	}
	return nil
}

// again undoes the first job of a group, and begins anew.
func (w *writer) again() error {
	w.conn.epoch++
	if _, err := w.conn.Exec("ROLLBACK"); err != nil {
		return err
	}
	return retry(w.wait, func() error {
		_, err := w.conn.Exec("BEGIN IMMEDIATE")
		return err
	})
}

func (j *job) run(c *Conn) {
	defer func() { j.panicked = recover() }()
	j.err = j.do(c)
}
