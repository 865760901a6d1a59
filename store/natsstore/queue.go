package natsstore

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A head has up to mostInline entries of its queue. Then all but the first ones go to a page, which is never changed: the head says
// which of its entries have not left it. A new page takes in those that have no more in them than it has, so that there are few, and an entry is
// written some times at most; none has more than mostPaged.
const (
	mostInline  = 64
	firstInline = 16
	mostPaged   = 4096
)

// queued is a page of a queue, as a head refers to it.
type queued struct {
	ref

	// N is how many entries it has. Gone are those that have left, a bit for each, after Front bytes of ones, and without zeros
	// at the end.
	N     int    `json:"n"`
	Front int    `json:"f,omitzero"`
	Gone  string `json:"g,omitzero"`
}

// queuePage is a page in memory. It is not changed.
type queuePage struct {
	ref

	entries []*entry
	// gone are those that have left, a bit for each, and left says how many have not.
	gone []byte
	left int
	// said is what a head says of it.
	said queued
}

func hasBit(bits []byte, i int) bool { return bits[i/8]&(1<<(i%8)) != 0 }

// leave notes that an entry has left its page.
func (w *waitlist) leave(e *entry) {
	old, _ := w.pages.Get(e.page)
	if old.left == 1 {
		w.dropPage(old)
		return
	}
	p := &queuePage{ref: old.ref, entries: old.entries, gone: slices.Clone(old.gone), left: old.left - 1}
	p.gone[e.place/8] |= 1 << (e.place % 8)
	w.keep(p)
}

func (w *waitlist) dropPage(p *queuePage) {
	w.pages.Delete(p.Seq)
	w.left = append(w.left, p.ref)
}

// keep puts a page into the list, in place of the one it was.
func (w *waitlist) keep(p *queuePage) {
	front := 0
	for front < len(p.gone) && p.gone[front] == 0xff {
		front++
	}
	bits := bytes.TrimRight(p.gone[front:], "\x00")
	p.said = queued{ref: p.ref, N: len(p.entries), Front: front, Gone: base64.RawStdEncoding.EncodeToString(bits)}
	w.pages.Set(p.Seq, p)
}

// same says whether two heads say the same of a page.
func (q queued) same(o queued) bool {
	return q.Seq == o.Seq && q.N == o.N && q.Front == o.Front && q.Gone == o.Gone
}

// bits are those of a page that have left.
func (q queued) bits() []byte {
	out := allGone(q.N)
	rest, _ := base64.RawStdEncoding.DecodeString(q.Gone) // none when it is empty
	if q.Front < len(out) {
		clear(out[q.Front+copy(out[q.Front:], rest):])
	}
	return out
}

func allGone(n int) []byte { return bytes.Repeat([]byte{0xff}, (n+7)/8) }

// gather puts the queue of the document together, from the latest one that this process knows. Pages that are new are read.
func (t *thread) gather(ctx context.Context) error {
	if t.doc.waiting != nil {
		return nil
	}
	w := t.s.shelf.copy(t.id)
	if w == nil {
		w = newWaitlist(t.s.looks)
	}
	if err := t.s.readPages(ctx, w, t.doc.QueuePages); err != nil {
		return err
	}
	w.follow(t.doc.Queue, t.doc.QueuePages)
	w.at(time.Now().UnixMilli())
	t.doc.waiting, t.doc.Queue, t.doc.QueuePages = w, nil, nil
	t.s.shelf.put(t.id, w)
	return nil
}

// errQueue is a queue that none of us wrote.
var errQueue = errors.New("a record is damaged: what it says of the queue's pages is not so")

// sound says whether a head can say that of a page.
func (q queued) sound() bool {
	return q.N > 0 && q.N <= mostPaged && q.Front >= 0 && q.Front <= (q.N+7)/8
}

// readPages reads those that the list does not have. All of their entries count as gone at first.
func (s *Store) readPages(ctx context.Context, w *waitlist, list []queued) error {
	for _, q := range list {
		if p, known := w.pages.Get(q.Seq); !q.sound() || known && len(p.entries) != q.N {
			return fmt.Errorf("natsstore: page %d: %w", q.Seq, errQueue)
		}
	}
	list = slices.Collect(func(yield func(queued) bool) {
		for _, q := range list {
			if _, known := w.pages.Get(q.Seq); !known && !yield(q) {
				return
			}
		}
	})
	read, errs := make([][]*entry, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	places := make(chan struct{}, readers)
	for i, q := range list {
		places <- struct{}{}
		wg.Go(func() {
			read[i], errs[i] = s.readPage(ctx, q.Seq)
			<-places
		})
	}
	wg.Wait()
	for i, q := range list {
		if errs[i] != nil {
			return errs[i]
		}
		if len(read[i]) != q.N {
			return fmt.Errorf("natsstore: page %d: %w", q.Seq, errQueue)
		}
		w.keep(&queuePage{ref: q.ref, entries: read[i], gone: allGone(len(read[i]))})
	}
	return nil
}

func (s *Store) readPage(ctx context.Context, seq uint64) (list []*entry, err error) {
	data, err := s.at(ctx, seq)
	if err != nil {
		return nil, err
	}
	if err := decode(data, &list); err != nil {
		return nil, err
	}
	for i, e := range list {
		if e == nil {
			return nil, fmt.Errorf("natsstore: page %d: %w", seq, errQueue)
		}
		e.page, e.place = seq, i
	}
	return list, nil
}

// follow makes the list that of a head, all of whose pages it has. It goes through what is inline, and what differs of the pages.
func (w *waitlist) follow(inline []entry, pages []queued) {
	w.stay(inline)
	if !w.saidAs(pages) {
		w.followPages(pages)
	}
	for i := range inline {
		if w.get(inline[i].ID) == nil {
			w.add(&inline[i])
		}
	}
}

// saidAs tells whether the pages are as a head says, in the order that heads have them in.
func (w *waitlist) saidAs(pages []queued) bool {
	if w.pages.Len() != len(pages) {
		return false
	}
	at, same := 0, true
	w.pages.Scan(func(_ uint64, p *queuePage) bool {
		same = pages[at].same(p.said)
		at++
		return same
	})
	return same
}

// followPages is follow for the pages.
func (w *waitlist) followPages(pages []queued) {
	wanted := map[uint64]queued{}
	for _, q := range pages {
		wanted[q.Seq] = q
	}
	var differ []*queuePage
	w.pages.Scan(func(_ uint64, p *queuePage) bool {
		if q, ok := wanted[p.Seq]; !ok || !q.same(p.said) {
			differ = append(differ, p)
		}
		return true
	})
	for _, p := range differ {
		q, ok := wanted[p.Seq]
		if !ok {
			q = queued{N: len(p.entries), Front: len(p.gone)}
		}
		p.differ(q, func(e *entry, gone bool) {
			if gone {
				w.take(e)
			}
		})
	}
	for _, p := range differ {
		if q, ok := wanted[p.Seq]; ok {
			w.keep(p.turn(q, w.add))
		} else {
			w.pages.Delete(p.Seq)
		}
	}
}

// stay takes out what is in no page and not as the head says.
func (w *waitlist) stay(inline []entry) {
	same := map[*entry]bool{}
	for i := range inline {
		if e := w.get(inline[i].ID); e != nil && *e == inline[i] {
			same[e] = true
		}
	}
	for _, e := range slices.Collect(w.inline.from(nil)) {
		if !same[e] {
			w.take(e)
		}
	}
}

// differ tells of each entry that has left the page, or come back to it, as the head says.
func (p *queuePage) differ(q queued, tell func(e *entry, gone bool)) {
	for n, now := range q.bits() {
		if now == p.gone[n] {
			continue
		}
		for i := 8 * n; i < min(8*n+8, len(p.entries)); i++ {
			if gone := now&(1<<(i%8)) != 0; gone != hasBit(p.gone, i) {
				tell(p.entries[i], gone)
			}
		}
	}
}

// turn is the page as the head says. It hands over each entry that has come back.
func (p *queuePage) turn(q queued, back func(*entry)) *queuePage {
	out := &queuePage{ref: p.ref, entries: p.entries, gone: q.bits(), left: p.left}
	p.differ(q, func(e *entry, gone bool) {
		if gone {
			out.left--
			return
		}
		out.left++
		back(e)
	})
	return out
}

// spill writes a page of the queue if the head would have too much of it.
func (t *thread) spill(ctx context.Context) error {
	w := t.doc.waiting
	if w.inline.Len() <= mostInline {
		return nil
	}
	move := w.moving()
	for some := range slices.Chunk(move, mostPaged) {
		r, err := t.putPart(ctx, some)
		if err != nil {
			return err
		}
		p := &queuePage{ref: r, left: len(some), gone: make([]byte, (len(some)+7)/8)}
		for place, old := range some {
			e := *old
			e.page, e.place = r.Seq, place
			w.remove(old.ID)
			w.add(&e)
			p.entries = append(p.entries, &e)
		}
		w.keep(p)
	}
	return nil
}

// moving are the entries that go to a page: those in the head but the first ones, and those of small pages.
func (w *waitlist) moving() (list []*entry) {
	stay := map[*entry]bool{}
	for e := range w.turns.from(nil) {
		if len(stay) == firstInline {
			break
		}
		stay[e] = true
	}
	for e := range w.inline.from(nil) {
		if !stay[e] {
			list = append(list, e)
		}
	}
	pages := w.pages.Values()
	slices.SortFunc(pages, func(a, b *queuePage) int { return a.left - b.left })
	for _, p := range pages {
		if p.left > len(list) || p.left+len(list) > mostPaged {
			break
		}
		for i, e := range p.entries {
			if !hasBit(p.gone, i) {
				list = append(list, e)
			}
		}
	}
	slices.SortFunc(list, byTurn)
	return list
}

// written is the document as it is written: with what of the queue is in no page, and what is said of the pages.
func (t *thread) written() document {
	out, w := t.doc, t.doc.waiting
	out.Queue, out.QueuePages = nil, nil
	if w == nil {
		return out
	}
	for e := range w.inline.from(nil) {
		out.Queue = append(out.Queue, *e)
	}
	w.pages.Scan(func(_ uint64, p *queuePage) bool {
		out.QueuePages = append(out.QueuePages, p.said)
		return true
	})
	t.old, w.left = append(t.old, w.left...), nil
	return out
}
