package outbox

import "time"

// queue is what the Outbox knows of a thread. The entries themselves are in the
// store. The Outbox's lock guards it.
type queue struct {
	open     map[uint64]*hold // entries that are not acknowledged
	promised int              // room for entries on their way to the store
	news     int              // open entries that are worth a wake and in nobody's hands
	room     chan struct{}    // closed and replaced when room appears
	wake     wake
}

// hold says in whose hands an entry is.
type hold struct {
	by    *Delivery
	until time.Time
	quiet bool // housekeeping: not worth a wake
}

// wake is when a thread is to be woken.
type wake struct {
	due time.Time // zero when there is nothing to wake for
	// forNews says that due is for news that is there, and not for a lease that ends.
	forNews bool
	// back is how long to wait after a wake that came to nothing. It grows until
	// something is acknowledged.
	back time.Duration
	// running is a wake under way, heard that news was taken since it began.
	running, heard bool
}

func newQueue() *queue { return &queue{open: map[uint64]*hold{}, room: make(chan struct{})} }

func (q *queue) waiting() int { return len(q.open) + q.promised }

func (q *queue) add(seq uint64, quiet bool) {
	q.open[seq] = &hold{quiet: quiet}
	if !quiet {
		q.news++
	}
}

// take puts an entry into the hands of d, unless somebody else has it. An entry
// that is not known yet is one whose sender is about to say so.
func (q *queue) take(seq uint64, d *Delivery, now, until time.Time) bool {
	h := q.open[seq]
	if h == nil || h.by != nil && now.Before(h.until) {
		return false
	}
	if h.by == nil && !h.quiet {
		q.news--
	}
	h.by, h.until = d, until
	return true
}

// release makes an entry that d has news again.
func (q *queue) release(seq uint64, d *Delivery) {
	if h := q.open[seq]; h != nil && h.by == d {
		h.by = nil
		if !h.quiet {
			q.news++
		}
	}
}

// drop takes an entry that was acknowledged out of the books.
func (q *queue) drop(seq uint64) {
	if h := q.open[seq]; h != nil && h.by == nil && !h.quiet {
		q.news--
	}
	delete(q.open, seq)
}

// madeRoom wakes senders that wait.
func (q *queue) madeRoom() {
	close(q.room)
	q.room = make(chan struct{})
}

// expire makes what was taken and never answered news again.
func (q *queue) expire(now time.Time) {
	for seq, h := range q.open {
		if h.by != nil && !now.Before(h.until) {
			q.release(seq, h.by)
		}
	}
}

// leaseEnd is when the first lease of something worth a wake ends, zero when there
// is none.
func (q *queue) leaseEnd() (end time.Time) {
	for _, h := range q.open {
		if h.by != nil && !h.quiet && (end.IsZero() || h.until.Before(end)) {
			end = h.until
		}
	}
	return end
}
