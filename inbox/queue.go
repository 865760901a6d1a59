package inbox

import (
	"slices"
	"time"
)

// queue is what an inbox knows of a thread. The entries themselves are in the
// store. The inbox's lock guards it.
type queue struct {
	open     map[uint64]*hold // entries that are not acknowledged
	promised int              // room for entries on their way to the store
	unread   int              // open entries that are worth a wake and that no delivery has
	wake     wake
}

// hold is which delivery has an entry.
type hold struct {
	by    *Delivery
	until time.Time
	quiet bool // housekeeping: not worth a wake
}

// wake is when a thread is to be woken.
type wake struct {
	due time.Time // zero when there is nothing to wake for
	// unread reports that due is for unread entries, and not for the end of a lease.
	unread bool
	// back is how long to wait after a wake without effect. It grows until an entry is acknowledged.
	back time.Duration
	// running reports a wake under way, taken that entries were taken since it began.
	running, taken bool
}

func newQueue() *queue { return &queue{open: map[uint64]*hold{}} }

func (q *queue) waiting() int { return len(q.open) + q.promised }

// add enters an entry, unless it is there.
func (q *queue) add(seq uint64, quiet bool) {
	if q.open[seq] != nil {
		return
	}
	q.open[seq] = &hold{quiet: quiet}
	if !quiet {
		q.unread++
	}
}

// reconcile drops entries that are not in a page of the store: another process acknowledged them.
func (q *queue) reconcile(page []entry, after, upTo uint64) {
	for seq := range q.open {
		if seq > after && seq <= upTo && !slices.ContainsFunc(page, func(e entry) bool { return e.seq == seq }) {
			q.drop(seq)
		}
	}
}

// take gives an entry to d, unless another delivery has it.
func (q *queue) take(seq uint64, d *Delivery, now, until time.Time) bool {
	h := q.open[seq]
	if h == nil || h.by != nil && now.Before(h.until) {
		return false
	}
	if h.by == nil && !h.quiet {
		q.unread--
	}
	h.by, h.until = d, until
	return true
}

// release makes an entry that d has unread again.
func (q *queue) release(seq uint64, d *Delivery) {
	if h := q.open[seq]; h != nil && h.by == d {
		h.by = nil
		if !h.quiet {
			q.unread++
		}
	}
}

// drop removes an entry that was acknowledged.
func (q *queue) drop(seq uint64) {
	if h := q.open[seq]; h != nil && h.by == nil && !h.quiet {
		q.unread--
	}
	delete(q.open, seq)
}

// expire makes entries unread whose lease is over.
func (q *queue) expire(now time.Time) {
	for seq, h := range q.open {
		if h.by != nil && !now.Before(h.until) {
			q.release(seq, h.by)
		}
	}
}

// leaseEnd is when the first lease of an entry that is worth a wake ends, zero when there is none.
func (q *queue) leaseEnd() (end time.Time) {
	for _, h := range q.open {
		if h.by != nil && !h.quiet && (end.IsZero() || h.until.Before(end)) {
			end = h.until
		}
	}
	return end
}
