package natsstore

import (
	"cmp"
	"iter"
	"math"
	"time"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/mailbox"
)

// waitlist is the queue of a thread in memory. What it is asked and what it is told costs about the same however long it is. A copy
// costs nothing, and neither changes with the other: so entries are replaced and never changed. A waitlist belongs to one goroutine.
type waitlist struct {
	// turns has all entries in their order, inline those that are in no page, and holding those that hold the thread.
	turns, inline, holding order
	// ready are those that were available at the clock, times all that wait for a time, by it.
	ready, times order
	clock        int64
	// births are those whose run is as it was born, by run.
	births order
	ids    *btree.Map[string, *entry]
	keys   *btree.Map[string, *entry]
	pages  *btree.Map[uint64, *queuePage]
	// left are pages that nobody is in any more.
	left []ref
}

// order is entries in some order. Work counts what is looked at, if somebody wants to know.
type order struct {
	*btree.BTreeG[*entry]

	work *int
}

func newOrder(compare func(a, b *entry) int, work *int) order {
	less := func(a, b *entry) bool {
		if work != nil {
			*work++
		}
		return compare(a, b) < 0
	}
	return order{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), work}
}

func (o order) copy() order { return order{o.BTreeG.Copy(), o.work} }

// from goes through entries from one that may not be there on, or all for nil.
func (o order) from(first *entry) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		each := func(e *entry) bool {
			if o.work != nil {
				*o.work++
			}
			return yield(e)
		}
		if first == nil {
			o.Scan(each)
			return
		}
		o.Ascend(first, each)
	}
}

func byTurn(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
}

func byTime(a, b *entry) int { return cmp.Or(cmp.Compare(a.Available, b.Available), byTurn(a, b)) }

func byRun(a, b *entry) int { return cmp.Or(cmp.Compare(a.Run, b.Run), byTurn(a, b)) }

func newWaitlist(work *int) *waitlist {
	return &waitlist{
		turns: newOrder(byTurn, work), inline: newOrder(byTurn, work), holding: newOrder(byTurn, work), ready: newOrder(byTurn, work),
		times: newOrder(byTime, work), births: newOrder(byRun, work), clock: math.MinInt64,
		ids: new(btree.Map[string, *entry]), keys: new(btree.Map[string, *entry]), pages: new(btree.Map[uint64, *queuePage]),
	}
}

func (w *waitlist) copy() *waitlist {
	return &waitlist{
		turns: w.turns.copy(), inline: w.inline.copy(), holding: w.holding.copy(), ready: w.ready.copy(),
		times: w.times.copy(), births: w.births.copy(), clock: w.clock,
		ids: w.ids.Copy(), keys: w.keys.Copy(), pages: w.pages.Copy(),
	}
}

// len is how many entries there are. A list that is not put together has none.
func (w *waitlist) len() int {
	if w == nil {
		return 0
	}
	return w.turns.Len()
}

// get finds the entry of a dispatch, or nil.
func (w *waitlist) get(id string) *entry {
	e, _ := w.ids.Get(id)
	return e
}

// add puts an entry in its place, where no other one of that id is but for one of the same order and page.
func (w *waitlist) add(e *entry) {
	w.ids.Set(e.ID, e)
	for _, o := range w.orders(e) {
		o.Set(e)
	}
	if e.Dedupe != "" {
		w.keys.Set(e.Dedupe, e)
	}
}

// orders are those that an entry is in: also a search for one that is not there copies what others share.
func (w *waitlist) orders(e *entry) []order {
	list := append(make([]order, 0, 6), w.turns)
	if e.page == 0 {
		list = append(list, w.inline)
	}
	if e.Holding {
		list = append(list, w.holding)
	}
	if e.First {
		list = append(list, w.births)
	}
	if e.Available != 0 {
		list = append(list, w.times)
	}
	if e.Available <= w.clock || e.Available == 0 {
		list = append(list, w.ready)
	}
	return list
}

// take takes an entry out, and leaves its page as it is.
func (w *waitlist) take(e *entry) {
	w.ids.Delete(e.ID)
	for _, o := range w.orders(e) {
		o.Delete(e)
	}
	if e.Dedupe == "" {
		return
	}
	if other, _ := w.keys.Get(e.Dedupe); other == e {
		w.keys.Delete(e.Dedupe)
	}
}

// remove takes a dispatch out, also of its page, and returns what it was, or nil.
func (w *waitlist) remove(id string) *entry {
	e := w.get(id)
	if e == nil {
		return nil
	}
	w.take(e)
	if e.page != 0 {
		w.leave(e)
	}
	return e
}

// birthOf is the number of a birth that an entry needs, zero if it does not say it.
func (w *waitlist) birthOf(key birthKey) (seq uint64, needed bool) {
	if w == nil {
		return 0, false
	}
	if key.kind == mailbox.KindDispatch {
		if e := w.get(key.id); e != nil {
			return e.Birth, true
		}
	} else if e := w.born(key.id); e != nil {
		return e.RunBirth, true
	}
	return 0, false
}

// bear notes the number of a birth with the entries that need it.
func (w *waitlist) bear(key birthKey, seq uint64) {
	if key.kind == mailbox.KindDispatch {
		if old := w.get(key.id); old != nil {
			e := *old
			e.Birth = seq
			w.add(&e)
		}
		return
	}
	var list []*entry
	for e := range w.births.from(&entry{Run: key.id}) {
		if e.Run != key.id {
			break
		}
		list = append(list, e)
	}
	for _, old := range list {
		e := *old
		e.RunBirth = seq
		w.add(&e)
	}
}

// next says who comes next at a time, who holds the thread, and when the first one comes that does not yet.
func (w *waitlist) next(now time.Time) (next, holder string, later time.Time) {
	w.at(now.UnixMilli())
	if e, ok := w.ready.Min(); ok {
		next = e.ID
	}
	if e, ok := w.holding.Min(); ok {
		holder = e.ID
	}
	for e := range w.times.from(&entry{Available: w.clock + 1}) {
		return next, holder, fromMillis(e.Available)
	}
	return next, holder, time.Time{}
}

// at sets the clock, which may also go back.
func (w *waitlist) at(clock int64) {
	from, to := min(w.clock, clock), max(w.clock, clock)
	if from == to {
		return
	}
	for e := range w.times.from(&entry{Available: from + 1}) {
		if e.Available > to {
			break
		}
		if clock == to {
			w.ready.Set(e)
		} else {
			w.ready.Delete(e)
		}
	}
	w.clock = clock
}

// born is an entry whose run is as it was born, and of that id, or nil.
func (w *waitlist) born(run string) *entry {
	for e := range w.births.from(&entry{Run: run}) {
		if e.Run == run {
			return e
		}
		break
	}
	return nil
}
