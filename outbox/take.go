package outbox

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// maxTake is how many entries one Take returns.
const maxTake = 256

// News is one notice as the reader gets it.
type News struct {
	abi.Notice

	// Seq identifies the entry within the outbox; At is when it was queued.
	Seq uint64
	At  time.Time
}

// Delivery is what a reader has taken: nobody else gets it until it is released or
// its lease is over. It is safe for concurrent use.
type Delivery struct {
	o      *Outbox
	thread string
	news   []News
}

// Take takes what a thread has to hear, oldest first, 256 entries at most, without
// waiting. A run takes at its boundaries, puts the news into the conversation, and
// calls Ack when the conversation is kept. When that does not come to pass it
// calls Release. A process that dies does neither: then everything is news again.
func (o *Outbox) Take(ctx context.Context, thread string) (*Delivery, error) {
	d := &Delivery{o: o, thread: thread}
	for after := uint64(0); len(d.news) < maxTake; {
		entries, err := o.cfg.Store.Pending(ctx, thread, after, maxTake)
		if err != nil {
			d.Release()
			return nil, wrap(thread, err)
		}
		if len(entries) == 0 {
			break
		}
		after = entries[len(entries)-1].Seq
		d.claim(ctx, entries)
	}
	return d, nil
}

// claim takes those entries that nobody has.
func (d *Delivery) claim(ctx context.Context, entries []Entry) {
	o, now := d.o, d.o.cfg.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queue(d.thread)
	for _, e := range entries {
		if len(d.news) == maxTake || !q.take(e.Seq, d, now, now.Add(o.cfg.Lease)) {
			continue
		}
		n, err := decodeNotice(e.Data)
		if err != nil {
			o.cfg.Logger.ErrorContext(ctx, "an entry cannot be read", "thread_id", d.thread, "seq", e.Seq, "error", err)
			n = abi.Notice{Kind: abi.NoticeCustom, EventType: "unreadable_entry"}
		}
		d.news = append(d.news, News{Notice: n, Seq: e.Seq, At: e.At})
	}
	o.taken(q)
	o.tidy(d.thread)
}

// News returns what was taken and is not answered yet, oldest first.
func (d *Delivery) News() []News {
	d.o.mu.Lock()
	defer d.o.mu.Unlock()
	return append([]News(nil), d.news...)
}

// Ack says that the first n of the news were used, and kept where they were used.
// They are never delivered again. On an error they still are in the hands of d.
func (d *Delivery) Ack(ctx context.Context, n int) error {
	d.o.mu.Lock()
	acked := d.news[:min(max(n, 0), len(d.news))]
	d.o.mu.Unlock()
	if len(acked) == 0 {
		return nil
	}
	seqs := make([]uint64, len(acked))
	var tasks []string
	for i := range acked {
		seqs[i] = acked[i].Seq
		if ends(acked[i].Kind) && acked[i].TaskID != "" {
			tasks = append(tasks, acked[i].TaskID)
		}
	}
	if err := d.o.cfg.Store.Remove(ctx, d.thread, seqs...); err != nil {
		return wrap(d.thread, err)
	}
	d.settle(seqs)
	if len(tasks) > 0 {
		d.o.cfg.Acknowledged(ctx, d.thread, tasks...)
	}
	return nil
}

// settle takes acknowledged entries out of the books. An entry may have been
// acknowledged by another reader after a lease was over.
func (d *Delivery) settle(seqs []uint64) {
	o := d.o
	o.mu.Lock()
	defer o.mu.Unlock()
	d.news = d.news[min(len(seqs), len(d.news)):]
	q := o.queue(d.thread)
	for _, seq := range seqs {
		q.drop(seq)
	}
	q.madeRoom()
	o.taken(q)
	o.tidy(d.thread)
}

// Release gives back what is not acknowledged: it is news again, in its old order.
func (d *Delivery) Release() {
	o := d.o
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queue(d.thread)
	for i := range d.news {
		q.release(d.news[i].Seq, d)
	}
	d.news = nil
	o.arrived(q)
	o.tidy(d.thread)
}
