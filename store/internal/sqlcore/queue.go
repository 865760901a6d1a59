package sqlcore

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrClosed reports a job that came after the last one.
var ErrClosed = errors.New("the store is closed")

// Queue has the jobs that wait while others run. One job at a time leads: its caller runs it, and as many of those that wait as share its
// transaction. The job that waits longest leads next.
type Queue[T any] struct {
	// Jobs and Bytes bound what shares a transaction. A single job may be larger.
	Jobs, Bytes int

	mu           sync.Mutex
	busy, closed bool
	waiting      []*Job[T]
}

// Job is something to run. It is for one [Queue.Do].
type Job[T any] struct {
	Item T
	// Size is about how many bytes it has.
	Size int
	// Alone shares no transaction. Last is the last job: those that come later are refused.
	Alone, Last bool

	// turn is closed when the job leads, or another one has run it. It is nil for a job that did not wait.
	turn  chan struct{}
	leads bool
}

// Do returns when another job has run this one, or calls lead to do so. With an error, which is ErrClosed or that of ctx, it was not run.
// Also when lead panics the next job leads, and lead has to call Done for the jobs that it got from Next.
func (q *Queue[T]) Do(ctx context.Context, j *Job[T], lead func()) error {
	if err := q.enter(j); err != nil {
		return err
	}
	if j.turn != nil {
		select {
		case <-j.turn:
		case <-ctx.Done():
			if q.withdraw(j) {
				return context.Cause(ctx)
			}
			<-j.turn // it is being run, or leads
		}
	}
	if j.leads {
		defer q.pass()
		lead()
	}
	return nil
}

// enter makes a job lead, or wait.
func (q *Queue[T]) enter(j *Job[T]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case q.busy:
		j.turn = make(chan struct{})
		q.waiting = append(q.waiting, j)
	default:
		q.busy, j.leads = true, true
	}
	q.closed = j.Last
	return nil
}

// withdraw removes a job if it still waits, and reports whether it did.
func (q *Queue[T]) withdraw(j *Job[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, j)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	return at >= 0
}

// Next removes the job that waits longest and may share a transaction, for the one that leads, which has so many jobs of so many bytes by
// now. Next returns nil if no job waits that may share, or the oldest does not fit. The one that leads calls Done for the job.
func (q *Queue[T]) Next(jobs, bytes int, fits func(T) bool) *Job[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.waiting, func(j *Job[T]) bool { return !j.Alone })
	if at < 0 || jobs >= q.Jobs {
		return nil
	}
	j := q.waiting[at]
	if bytes+j.Size > q.Bytes || !fits(j.Item) {
		return nil
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	return j
}

// Done releases the caller of a job that the leader has run. For the leader's own job it does nothing.
func (j *Job[T]) Done() {
	if !j.leads {
		close(j.turn)
	}
}

// pass has the next job lead.
func (q *Queue[T]) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy = len(q.waiting) > 0; !q.busy {
		return
	}
	j := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	j.leads = true
	close(j.turn)
}

// Len returns how many jobs there are, with the one that leads.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return len(q.waiting) + 1
	}
	return 0
}

// Any reports whether the item of a waiting job satisfies such.
func (q *Queue[T]) Any(such func(T) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.waiting, func(j *Job[T]) bool { return such(j.Item) })
}
