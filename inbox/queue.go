package inbox

import (
	"context"
	"slices"
	"time"
)

// queue is what an inbox knows of a thread. The entries themselves are in the
// store. The inbox's lock guards it.
type queue struct {
	open     map[uint64]hold // entries that are not acknowledged
	promised int             // room for entries on their way to the store
	// due is when the thread is to be woken, zero for never. It is for unread entries if unread is set, and else for the end
	// of a lease.
	due    time.Time
	timer  *time.Timer // for due
	unread bool
	// back is how long to wait after a wake without effect. It grows until an entry is acknowledged.
	back time.Duration
	// running reports a wake under way, taken that entries were taken since it began.
	running, taken bool
}

// hold is which delivery has an entry.
type hold struct {
	by    *Delivery
	until time.Time
	quiet bool // housekeeping: not worth a wake
}

func (h hold) free(now time.Time) bool { return h.by == nil || !now.Before(h.until) }

func (q *queue) waiting() int { return len(q.open) + q.promised }

// status returns whether an entry is unread that is worth a wake, and when the first lease of such an entry ends.
func (q *queue) status(now time.Time) (unread bool, end time.Time) {
	for _, h := range q.open {
		switch {
		case h.quiet:
		case h.free(now):
			unread = true
		case end.IsZero() || h.until.Before(end):
			end = h.until
		}
	}
	return unread, end
}

// queue returns that of a thread. The caller holds the lock.
func (o *Inbox) queue(thread string) *queue {
	q := o.queues[thread]
	if q == nil {
		q = &queue{open: map[uint64]hold{}, back: o.cfg.Retry}
		o.queues[thread] = q
	}
	return q
}

// settle schedules a wake for what the queue of a thread has, and forgets a queue that has nothing. The first unread entry waits for
// more; later ones are covered by the wake that is due. The caller holds the lock.
func (o *Inbox) settle(thread string, q *queue) {
	now := o.cfg.Now()
	unread, end := q.status(now)
	switch {
	case !unread:
		q.due = end
	case !q.unread:
		q.due = now.Add(o.cfg.Debounce)
	}
	q.unread = unread
	o.arm(thread, q)
	if q.waiting() == 0 && !q.running && o.queues[thread] == q {
		delete(o.queues, thread)
	}
}

// scan reads the entries of a thread, oldest first, and corrects what is known of it. It calls visit with
// each page, under the lock, until visit returns false. Entries that are not known are entered if adopt is true or other
// processes may have queued them.
func (o *Inbox) scan(ctx context.Context, thread string, adopt bool, visit func(q *queue, page []entry) (more bool)) error {
	for after := uint64(0); ; {
		page, upTo, err := o.page(ctx, thread, after)
		if err != nil {
			return wrap(thread, err)
		}
		o.mu.Lock()
		q := o.queue(thread)
		q.reconcile(page, after, upTo, adopt || o.cfg.Shared)
		more := visit(q, page) && len(page) == pageSize
		o.settle(thread, q)
		o.mu.Unlock()
		if !more {
			return nil
		}
		after = upTo
	}
}

// reconcile corrects a queue by a page, which has what the store has behind after and up to a number.
func (q *queue) reconcile(page []entry, after, upTo uint64, adopt bool) {
	for seq := range q.open { // another process acknowledged those that are missing
		if seq > after && seq <= upTo && !slices.ContainsFunc(page, func(e entry) bool { return e.seq == seq }) {
			delete(q.open, seq)
		}
	}
	for i := range page {
		if _, known := q.open[page[i].seq]; !known && adopt && q.promised == 0 { // else its sender may be about to add it
			n, err := decodeNotice(page[i].data)
			q.open[page[i].seq] = hold{quiet: err == nil && n.Housekeeping}
		}
	}
}

// all visits all pages.
func all(*queue, []entry) bool { return true }
