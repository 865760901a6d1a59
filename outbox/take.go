package outbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// maxTake is how many entries one Take returns.
const maxTake = 256

// News is one notice as the reader gets it.
type News struct {
	abi.Notice

	// Seq identifies the entry within the outbox; At is when it was queued. Key
	// identifies it anywhere: it is the same whenever the entry comes, and no other
	// entry of any outbox has it.
	Seq uint64
	At  time.Time
	Key string
}

// key makes the key of an entry. A number alone would come again in another store.
func key(e *Entry) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", e.At.UnixMilli(), e.Data))
	return fmt.Sprintf("%d-%x", e.Seq, sum[:8])
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
	if o.Waiting(thread) == 0 {
		return d, nil
	}
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
	for i := range entries {
		e := &entries[i]
		if len(d.news) == maxTake || !q.take(e.Seq, d, now, now.Add(o.cfg.Lease)) {
			continue
		}
		n, err := decodeNotice(e.Data)
		if err != nil {
			o.cfg.Logger.ErrorContext(ctx, "an entry cannot be read", "thread_id", d.thread, "seq", e.Seq, "error", err)
			n = abi.Notice{Kind: abi.NoticeCustom, EventType: "unreadable_entry"}
		}
		d.news = append(d.news, News{Notice: n, Seq: e.Seq, At: e.At, Key: key(e)})
	}
	q.wake.heard = q.wake.heard || len(d.news) > 0
	o.taken(q)
	o.tidy(d.thread)
}

// News returns what was taken and is not answered yet, oldest first.
func (d *Delivery) News() []News {
	d.o.mu.Lock()
	defer d.o.mu.Unlock()
	return append([]News(nil), d.news...)
}

// Notices is [Delivery.News] without what identifies it.
func (d *Delivery) Notices() []abi.Notice {
	news := d.News()
	out := make([]abi.Notice, len(news))
	for i := range news {
		out[i] = news[i].Notice
	}
	return out
}

// All yields [Delivery.News] by key.
func (d *Delivery) All() iter.Seq2[string, abi.Notice] {
	return func(yield func(string, abi.Notice) bool) {
		for _, n := range d.News() {
			if !yield(n.Key, n.Notice) {
				return
			}
		}
	}
}

// Ack says that the first n of the news were used, and kept where they were used.
// They are never delivered again. On an error they still are in the hands of d.
func (d *Delivery) Ack(ctx context.Context, n int) error {
	return d.ack(ctx, d.News(), n)
}

// Done does what Ack does for those with these keys. A key that is not among the
// news has been answered before.
func (d *Delivery) Done(ctx context.Context, keys ...string) error {
	used := slices.DeleteFunc(d.News(), func(n News) bool { return !slices.Contains(keys, n.Key) })
	return d.ack(ctx, used, len(used))
}

func (d *Delivery) ack(ctx context.Context, news []News, n int) error {
	acked := news[:min(max(n, 0), len(news))]
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
	d.news = slices.DeleteFunc(slices.Clone(d.news), func(n News) bool { return slices.Contains(seqs, n.Seq) })
	q := o.queue(d.thread)
	for _, seq := range seqs {
		q.drop(seq)
	}
	q.wake.back = o.cfg.Retry
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
