package natsstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"sync"
)

// A head has up to mostInline entries of its queue. Then all but the first ones go to a page, which is never changed: the head says
// which of its entries have not left it. Pages that have lost most of theirs are taken back when the next one is written.
const (
	mostInline  = 64
	firstInline = 16
	queuePage   = 256
	sparse      = 4
)

// queued is a page of a queue, as a head refers to it.
type queued struct {
	ref

	// N is how many entries it has, Gone those that have left, a bit for each.
	N    int    `json:"n"`
	Gone string `json:"g,omitzero"`
}

func byTurn(a, b entry) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq))
}

// gather reads the pages of the queue and puts it together.
func (t *thread) gather(ctx context.Context) error {
	if t.gathered {
		return nil
	}
	lists, errs := make([][]entry, len(t.doc.QueuePages)), make([]error, len(t.doc.QueuePages))
	var wg sync.WaitGroup
	places := make(chan struct{}, readers)
	for i, p := range t.doc.QueuePages {
		places <- struct{}{}
		wg.Go(func() {
			lists[i], errs[i] = t.s.queuePage(ctx, p)
			<-places
		})
	}
	wg.Wait()
	for i := range lists {
		if errs[i] != nil {
			return errs[i]
		}
		t.doc.Queue = append(t.doc.Queue, lists[i]...)
	}
	slices.SortFunc(t.doc.Queue, byTurn)
	t.gathered = true
	return nil
}

// queuePage reads those entries of a page that have not left it.
func (s *Store) queuePage(ctx context.Context, p queued) (list []entry, err error) {
	data, err := s.at(ctx, p.Seq)
	if err != nil {
		return nil, err
	}
	var all []entry
	if err := decode(data, &all); err != nil {
		return nil, err
	}
	gone, _ := base64.RawStdEncoding.DecodeString(p.Gone) // none when it is empty
	for i, e := range all {
		if i/8 < len(gone) && gone[i/8]&(1<<(i%8)) != 0 {
			continue
		}
		e.page, e.place = p.Seq, i
		list = append(list, e)
	}
	return list, nil
}

// spill writes pages of the queue if the head would have too much of it.
func (t *thread) spill(ctx context.Context) error {
	inline, left := 0, map[uint64]int{}
	for i := range t.doc.Queue {
		if e := &t.doc.Queue[i]; e.page == 0 {
			inline++
		} else {
			left[e.page]++
		}
	}
	if inline <= mostInline {
		return nil
	}
	few := map[uint64]bool{}
	for _, p := range t.doc.QueuePages {
		few[p.Seq] = left[p.Seq]*sparse < p.N
	}
	var move []int
	for i := range t.doc.Queue {
		if e := &t.doc.Queue[i]; i >= firstInline && (e.page == 0 || few[e.page]) {
			move = append(move, i)
		}
	}
	for some := range slices.Chunk(move, queuePage) {
		list := make([]entry, 0, len(some))
		for _, i := range some {
			list = append(list, t.doc.Queue[i])
		}
		r, err := t.putPart(ctx, list)
		if err != nil {
			return err
		}
		for place, i := range some {
			t.doc.Queue[i].page, t.doc.Queue[i].place = r.Seq, place
		}
		t.doc.QueuePages = append(t.doc.QueuePages, queued{ref: r, N: len(some)})
	}
	return nil
}

// written is the document as it is written: with what of the queue is in no page. Pages that nobody is in go.
func (t *thread) written() document {
	out := t.doc
	out.Format, out.Queue, out.QueuePages = format, nil, nil
	there := map[uint64][]bool{}
	for i := range t.doc.Queue {
		e := &t.doc.Queue[i]
		if e.page == 0 {
			out.Queue = append(out.Queue, *e)
			continue
		}
		if there[e.page] == nil {
			there[e.page] = make([]bool, queuePage)
		}
		there[e.page][e.place] = true
	}
	for _, p := range t.doc.QueuePages {
		if there[p.Seq] == nil {
			t.old = append(t.old, p.ref)
			continue
		}
		p.Gone = goneBits(there[p.Seq][:p.N])
		out.QueuePages = append(out.QueuePages, p)
	}
	t.doc.QueuePages = out.QueuePages
	return out
}

// goneBits has a bit for each that is not there, and is empty when all are.
func goneBits(there []bool) string {
	bits, all := make([]byte, (len(there)+7)/8), true
	for i, x := range there {
		if !x {
			bits[i/8] |= 1 << (i % 8)
			all = false
		}
	}
	if all {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(bits)
}
