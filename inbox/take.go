package inbox

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
)

// maxTake is how many notifications one Take returns.
const maxTake = 256

// Notification is one notification of a delivery.
type Notification struct {
	abi.Notice

	// Seq identifies it within the inbox; At is when it was queued. Key
	// identifies it anywhere: it is the same whenever the notification comes, and no other
	// notification of any inbox has it.
	Seq uint64
	At  time.Time
	Key string
}

// Delivery is what a reader has taken: no other delivery of the Inbox gets it until it is released or
// its lease is over. It is safe for concurrent use.
type Delivery struct {
	o      *Inbox
	thread string
	list   []Notification
}

// Take takes the unread notifications of a thread, oldest first, 256 at most, without
// waiting. A run takes at its boundaries, puts them into the conversation, and
// calls Done when the conversation is persisted. When that fails it
// calls Release. A process that dies does neither: then all are unread in the next one.
func (o *Inbox) Take(ctx context.Context, thread string) (*Delivery, error) {
	d := &Delivery{o: o, thread: thread}
	if !o.cfg.Shared && o.Waiting(thread) == 0 {
		return d, nil
	}
	now := o.cfg.Now()
	err := o.scan(ctx, thread, false, func(q *queue, page []entry) (more bool) {
		for i := range page {
			seq := page[i].seq
			h, known := q.open[seq]
			if !known || !h.free(now) || len(d.list) == maxTake {
				continue
			}
			h.by, h.until = d, now.Add(o.cfg.Lease)
			q.open[seq] = h
			d.list = append(d.list, o.read(ctx, thread, &page[i]))
		}
		if len(d.list) > 0 {
			q.taken, q.unread = true, false // the wake that covered others is answered
		}
		return len(d.list) < maxTake
	})
	if err != nil {
		d.Release()
		return nil, err
	}
	return d, nil
}

// read decodes an entry.
func (o *Inbox) read(ctx context.Context, thread string, e *entry) Notification {
	n, err := decodeNotice(e.data)
	if err != nil {
		o.cfg.Logger.ErrorContext(ctx, "an entry cannot be read", "thread_id", thread, "seq", e.seq, "error", err)
		n = abi.Notice{Kind: abi.NoticeCustom, EventType: "unreadable_entry"}
	}
	return Notification{Notice: n, Seq: e.seq, At: e.at, Key: e.key()}
}

// Notifications returns what was taken and is neither acknowledged nor released, oldest first.
func (d *Delivery) Notifications() []Notification {
	d.o.mu.Lock()
	defer d.o.mu.Unlock()
	return slices.Clone(d.list)
}

// All yields [Delivery.Notifications] by key.
func (d *Delivery) All() iter.Seq2[string, abi.Notice] {
	return func(yield func(string, abi.Notice) bool) {
		for _, n := range d.Notifications() {
			if !yield(n.Key, n.Notice) {
				return
			}
		}
	}
}

// Done acknowledges the notifications with these keys: they were used, and are persisted where they
// were used. They are never delivered again. A key that the delivery does not have was acknowledged
// before. On an error the delivery still has them.
func (d *Delivery) Done(ctx context.Context, keys ...string) error {
	if err := d.o.drop(ctx, d.thread, d.Cells(keys...)); err != nil {
		return wrap(d.thread, err)
	}
	d.Deleted(ctx, keys...)
	return nil
}

// Store returns the store that has the notifications, in the thread for which they were taken.
func (d *Delivery) Store() store.Store { return d.o.cfg.Store }

// Cells returns where the store has the notifications with these keys. A caller that deletes them there, in one batch with what it made of
// them, acknowledges them by that, and calls Deleted next.
func (d *Delivery) Cells(keys ...string) (cells []store.Range) {
	for _, n := range d.with(keys) {
		cells = append(cells, store.One(entryKind, entryKey(n.Seq)))
	}
	return cells
}

// Deleted takes the notifications with these keys out of the delivery, after their cells were deleted. Another delivery may have
// acknowledged one after a lease was over.
func (d *Delivery) Deleted(ctx context.Context, keys ...string) {
	gone := d.with(keys)
	if len(gone) == 0 {
		return
	}
	var tasks []string
	d.o.mu.Lock()
	q := d.o.queue(d.thread)
	for i := range gone {
		delete(q.open, gone[i].Seq)
		if ends(gone[i].Kind) && gone[i].TaskID != "" {
			tasks = append(tasks, gone[i].TaskID)
		}
	}
	d.list = slices.DeleteFunc(slices.Clone(d.list), func(n Notification) bool { return slices.Contains(keys, n.Key) })
	q.back = d.o.cfg.Retry
	d.o.settle(d.thread, q)
	d.o.mu.Unlock()
	if len(tasks) > 0 {
		d.o.cfg.Acknowledged(ctx, d.thread, tasks...)
	}
}

// with returns the notifications with these keys that are neither acknowledged nor released.
func (d *Delivery) with(keys []string) []Notification {
	return slices.DeleteFunc(d.Notifications(), func(n Notification) bool { return !slices.Contains(keys, n.Key) })
}

// Release gives back what is not acknowledged: it is unread again, in its old order.
func (d *Delivery) Release() {
	o := d.o
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queue(d.thread)
	for i := range d.list {
		if h := q.open[d.list[i].Seq]; h.by == d {
			h.by = nil
			q.open[d.list[i].Seq] = h
		}
	}
	d.list = nil
	o.settle(d.thread, q)
}
