package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// OpenFunc opens one empty store twice, as two processes would. Both may be the same Store if the engine knows only one process.
// The test closes them with t.Cleanup.
type OpenFunc func(t *testing.T) (one, other store.Store)

// TestStore runs the contract.
func TestStore(t *testing.T, open OpenFunc) {
	t.Helper()
	cases := map[string]func(*world){
		"a thread that does not exist is empty":         emptyThread,
		"cells come back by range":                      ranges,
		"any bytes are a key and a value":               strangeNames,
		"a put replaces the cell and its index keys":    replace,
		"another revision is a conflict":                conflict,
		"a batch is whole or nothing":                   whole,
		"the same batch id is one batch":                twice,
		"entries are numbered and trimmed":              entries,
		"a drop leaves nothing":                         drop,
		"a dropped thread has no old revision":          dropRevision,
		"scan pages through a group":                    scan,
		"scan returns values":                           scanValues,
		"count counts groups":                           count,
		"a unique place has one cell":                   unique,
		"concurrent writers lose nothing":               concurrent,
		"of two writers with one revision one succeeds": race,
		"of two writers with one unique place one wins": uniqueRace,
		"large values":                                  large,
		"many cells":                                    many,
		"an invalid batch is refused":                   invalid,
		"a context that is over":                        cancelled,
		"watch receives from both":                      watch,
		"snapshots belong to the caller":                owned,
	}
	runCases(t, open, cases)
}

// runCases runs each case on a store of its own.
func runCases(t *testing.T, open OpenFunc, cases map[string]func(*world)) {
	t.Helper()
	for name, run := range cases {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			run(&world{T: t, one: one, other: other})
		})
	}
}

// world is a store as two processes have it.
type world struct {
	*testing.T
	one, other store.Store
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) apply(b store.Batch) uint64 {
	w.Helper()
	revision, err := w.one.Apply(w.Context(), b)
	w.must(err)
	return revision
}

func (w *world) read(s store.Store, thread string, q store.Query) store.Snapshot {
	w.Helper()
	out, err := s.Read(w.Context(), thread, q)
	w.must(err)
	return out
}

// refuse applies a batch that must fail so.
func (w *world) refuse(want error, b store.Batch) {
	w.Helper()
	if _, err := w.other.Apply(w.Context(), b); !errors.Is(err, want) {
		w.Errorf("got %v, want %v", err, want)
	}
}

// cells describes the cells of a kind of a thread, as both processes see it.
func (w *world) cells(thread string, ranges ...store.Range) string {
	w.Helper()
	var list [2]string
	for i, s := range []store.Store{w.one, w.other} {
		for _, c := range w.read(s, thread, store.Query{Cells: ranges}).Cells {
			list[i] += fmt.Sprintf(" %s/%s=%s", c.Kind, c.Key, c.Value)
			if c.Index != nil {
				w.Errorf("Read returned the index keys of %s", c.Key)
			}
		}
	}
	if list[0] != list[1] {
		w.Errorf("one sees %q, the other %q", list[0], list[1])
	}
	return strings.TrimSpace(list[0])
}

// scan describes a listing, as both processes see it. Another process may lag: it gets some time.
func (w *world) scan(q store.Scan) string {
	w.Helper()
	q.Limit = cmp.Or(q.Limit, 1000)
	describe := func(s store.Store) string {
		list, err := s.Scan(w.Context(), q)
		w.must(err)
		var out []string
		for _, r := range list {
			text := r.Thread + "/" + r.Kind + "/" + r.Key + "@" + r.IndexKey
			if q.Values {
				text += "=" + string(r.Value)
			}
			out = append(out, text)
		}
		return strings.Join(out, " ")
	}
	got := describe(w.one)
	w.soon("scan", got, func() string { return describe(w.other) })
	return got
}

// soon waits until the other process sees what this one does.
func (w *world) soon(what, want string, see func() string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	defer cancel()
	for got := see(); got != want; got = see() {
		timer := time.NewTimer(5 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			w.Fatalf("%s: the other process sees %q, this one %q", what, got, want)
		}
	}
}

func (w *world) equal(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func cell(kind, key, value string, index ...store.IndexKey) store.Cell {
	return store.Cell{Kind: kind, Key: key, Value: []byte(value), Index: index}
}

func at(name, group, key string) store.IndexKey {
	return store.IndexKey{Name: name, Group: group, Key: key}
}

func only(name, key string) store.IndexKey {
	return store.IndexKey{Name: name, Key: key, Unique: true}
}

func put(thread string, base uint64, cells ...store.Cell) store.Batch {
	return store.Batch{Thread: thread, Base: base, Put: cells}
}

func emptyThread(w *world) {
	s := w.read(w.one, "t", store.Query{Cells: []store.Range{store.All("a")}, Entries: []store.Span{{Log: "l", From: 1, Limit: 10}}})
	if s.Revision != 0 || len(s.Cells)+len(s.Entries) != 0 || s.Last["l"] != 0 {
		w.Errorf("got %+v", s)
	}
	w.equal("scan", w.scan(store.Scan{Index: "i"}), "")
	first := w.apply(put("t", 0, cell("a", "", "x")))
	if got := w.read(w.other, "t", store.Query{}); got.Revision != first || first == 0 {
		w.Errorf("revision is %d, Apply returned %d", got.Revision, first)
	}
}

func ranges(w *world) {
	w.apply(put("t", 0, cell("a", "1", "one"), cell("a", "2", "two"), cell("a", "21", "more"), cell("a", "3", "three"), cell("b", "2", "B")))
	w.equal("all", w.cells("t", store.All("a")), "a/1=one a/2=two a/21=more a/3=three")
	w.equal("one", w.cells("t", store.One("a", "2")), "a/2=two")
	w.equal("from", w.cells("t", store.Range{Kind: "a", From: "2"}), "a/2=two a/21=more a/3=three")
	w.equal("range", w.cells("t", store.Range{Kind: "a", From: "2", To: "3"}), "a/2=two a/21=more")
	w.equal("limit", w.cells("t", store.Range{Kind: "a", From: "2", Limit: 2}), "a/2=two a/21=more")
	w.equal("several", w.cells("t", store.One("b", "2"), store.One("a", "3"), store.One("a", "9")), "b/2=B a/3=three")
	w.equal("another thread", w.cells("u", store.All("a")), "")
	w.apply(store.Batch{Thread: "t", Base: store.AnyRevision, Delete: []store.Range{{Kind: "a", From: "2", To: "3", Limit: 1}}})
	w.equal("after a deletion", w.cells("t", store.All("a"), store.All("b")), "a/1=one a/3=three b/2=B")
}

func strangeNames(w *world) {
	names := []string{"", "\x00", "\xff\xfe", "a.b", "*", ">", "'; DROP TABLE cell; --", "%", "_", "A", "a", "tab\tx", "☃", strings.Repeat("x", store.MaxKey)}
	for i, name := range names {
		thread := "t" + name[:min(len(name), store.MaxKey-1)]
		w.apply(put(thread, 0, cell("k", name, name, at("i", name, fmt.Sprint(i)), only("u", name))))
		w.equal("cell", w.cells(thread, store.One("k", name)), "k/"+name+"="+name)
		w.equal("scan", w.scan(store.Scan{Index: "i", Group: name}), thread+"/k/"+name+"@"+fmt.Sprint(i))
		w.apply(store.Batch{Thread: thread, Base: store.AnyRevision, Append: []store.Entry{{Log: "l" + name[:min(len(name), store.MaxKey-1)], Data: []byte(name)}}})
	}
	counts, err := w.one.Count(w.Context(), "i")
	w.must(err)
	if len(counts) != len(names) {
		w.Errorf("%d groups, want %d", len(counts), len(names))
	}
}

func replace(w *world) {
	r := w.apply(put("t", 0, cell("a", "1", "one", at("i", "g", "k1"), at("j", "", "x"))))
	r = w.apply(put("t", r, cell("a", "1", "two", at("i", "h", "k2"))))
	w.equal("value", w.cells("t", store.All("a")), "a/1=two")
	w.equal("old group", w.scan(store.Scan{Index: "i", Group: "g"}), "")
	w.equal("new group", w.scan(store.Scan{Index: "i", Group: "h"}), "t/a/1@k2")
	w.equal("other index", w.scan(store.Scan{Index: "j"}), "")
	w.apply(store.Batch{Thread: "t", Base: r, Delete: []store.Range{store.One("a", "1")}})
	w.equal("after the deletion", w.scan(store.Scan{Index: "i", Group: "h"})+w.cells("t", store.All("a")), "")
}

func conflict(w *world) {
	w.refuse(store.ErrConflict, put("t", 1, cell("a", "", "x")))
	r := w.apply(put("t", 0, cell("a", "", "x")))
	w.refuse(store.ErrConflict, put("t", 0, cell("a", "", "y")))
	w.refuse(store.ErrConflict, put("t", r-1, cell("a", "", "y")))
	w.refuse(store.ErrConflict, put("t", r+1, cell("a", "", "y")))
	w.equal("value", w.cells("t", store.All("a")), "a/=x")
	next := w.apply(put("t", r, cell("a", "", "y")))
	if next <= r {
		w.Errorf("revision %d after %d", next, r)
	}
	if last := w.apply(put("t", store.AnyRevision, cell("a", "", "z"))); last <= next {
		w.Errorf("revision %d after %d", last, next)
	}
	w.apply(put("new", store.AnyRevision, cell("a", "", "z")))
}

func whole(w *world) {
	r := w.apply(store.Batch{Thread: "t", Put: []store.Cell{cell("a", "1", "x", only("u", "k"))}, Append: []store.Entry{{Log: "l", Data: []byte("first")}}})
	for want, b := range map[error]store.Batch{
		store.ErrExists:   {Put: []store.Cell{cell("a", "2", "y", at("i", "", "2")), cell("a", "3", "z", only("u", "k"))}, Append: []store.Entry{{Log: "l", Data: []byte("second")}}},
		store.ErrConflict: {Put: []store.Cell{cell("a", "2", "y", at("i", "", "2"))}, Append: []store.Entry{{Log: "l", Seq: 2}, {Log: "l", Seq: 4}}},
	} {
		b.Thread, b.Base, b.ID = "t", r, "refused"
		w.refuse(want, b)
	}
	w.equal("cells", w.cells("t", store.All("a")), "a/1=x")
	w.equal("index", w.scan(store.Scan{Index: "i"}), "")
	s := w.read(w.other, "t", store.Query{Entries: []store.Span{{Log: "l"}}})
	if s.Revision != r || s.Last["l"] != 1 {
		w.Errorf("got %+v, want revision %d", s, r)
	}
	w.apply(store.Batch{Thread: "t", Base: r, ID: "refused", Put: []store.Cell{cell("a", "2", "y")}})
	w.equal("what was refused can be applied later", w.cells("t", store.One("a", "2")), "a/2=y")
}

func twice(w *world) {
	b := store.Batch{Thread: "t", ID: "b1", Put: []store.Cell{cell("a", "", "x")}, Append: []store.Entry{{Log: "l", Data: []byte("x")}}}
	first := w.apply(b)
	for _, s := range []store.Store{w.one, w.other} {
		again, err := s.Apply(w.Context(), b)
		w.must(err)
		if again != first {
			w.Errorf("the second time it has revision %d, the first time %d", again, first)
		}
	}
	r := first
	for i := range store.Remembered - 1 {
		r = w.apply(store.Batch{Thread: "t", ID: fmt.Sprint("more", i), Base: r, Put: []store.Cell{cell("a", "", fmt.Sprint(i))}})
	}
	if again := w.apply(b); again != first {
		w.Errorf("after %d others it has revision %d, the first time %d", store.Remembered-1, again, first)
	}
	s := w.read(w.other, "t", store.Query{Entries: []store.Span{{Log: "l"}}})
	if s.Last["l"] != 1 || s.Revision != r {
		w.Errorf("got %+v", s)
	}
	w.apply(store.Batch{Thread: "u", ID: "b1", Put: []store.Cell{cell("a", "", "another thread")}})
	w.equal("another thread", w.cells("u", store.All("a")), "a/=another thread")
}

func entries(w *world) {
	see := func(span store.Span) string {
		w.Helper()
		var list [2]string
		for i, s := range []store.Store{w.one, w.other} {
			out := w.read(s, "t", store.Query{Entries: []store.Span{span}})
			for _, e := range out.Entries {
				list[i] += fmt.Sprintf("%s%d=%s ", e.Log, e.Seq, e.Data)
			}
			list[i] += fmt.Sprint("of ", out.Last[span.Log])
		}
		w.equal("the other process", list[1], list[0])
		return list[0]
	}
	w.apply(store.Batch{Thread: "t", Append: []store.Entry{{Log: "l", Data: []byte("a")}, {Log: "m", Data: []byte("A")}, {Log: "l", Seq: 2, Data: []byte("b")}}})
	w.apply(store.Batch{Thread: "t", Base: store.AnyRevision, Append: []store.Entry{{Log: "l", Seq: 3, Data: []byte("c")}, {Log: "l"}}})
	w.equal("all", see(store.Span{Log: "l", Limit: 10}), "l1=a l2=b l3=c l4= of 4")
	w.equal("page", see(store.Span{Log: "l", From: 2, Limit: 2}), "l2=b l3=c of 4")
	w.equal("length", see(store.Span{Log: "l", From: 2}), "of 4")
	w.equal("after the end", see(store.Span{Log: "l", From: 5, Limit: 2}), "of 4")
	w.equal("another log", see(store.Span{Log: "m", From: 1, Limit: 2}), "m1=A of 1")
	w.refuse(store.ErrConflict, store.Batch{Thread: "t", Base: store.AnyRevision, Append: []store.Entry{{Log: "l", Seq: 4}}})
	w.apply(store.Batch{Thread: "t", Base: store.AnyRevision, Trim: []store.Trim{{Log: "l", Before: 3}, {Log: "none", Before: 7}}})
	w.equal("trimmed", see(store.Span{Log: "l", Limit: 10}), "l3=c l4= of 4")
	w.apply(store.Batch{Thread: "t", Base: store.AnyRevision, Trim: []store.Trim{{Log: "l", Before: 100}}, Append: []store.Entry{{Log: "l", Data: []byte("e")}}})
	w.equal("trimmed and continued", see(store.Span{Log: "l", Limit: 10}), "l5=e of 5")
	w.apply(store.Batch{Thread: "t", Base: store.AnyRevision, Trim: []store.Trim{{Log: "l", Before: 100}}})
	w.equal("empty", see(store.Span{Log: "l", Limit: 10}), "of 5")
}

func drop(w *world) {
	w.apply(store.Batch{Thread: "t", ID: "b1", Put: []store.Cell{cell("a", "1", "x", at("i", "", "k"), only("u", "k"))}, Append: []store.Entry{{Log: "l", Data: []byte("x")}}})
	r := w.read(w.other, "t", store.Query{}).Revision
	w.refuse(store.ErrConflict, store.Batch{Thread: "t", Base: r + 1, Drop: true})
	_, err := w.other.Apply(w.Context(), store.Batch{Thread: "t", Base: r, Drop: true})
	w.must(err)
	s := w.read(w.one, "t", store.Query{Cells: []store.Range{store.All("a")}, Entries: []store.Span{{Log: "l", Limit: 9}}})
	if s.Revision != 0 || len(s.Cells)+len(s.Entries) != 0 || s.Last["l"] != 0 {
		w.Errorf("got %+v", s)
	}
	w.soon("scan", "", func() string { return w.scan(store.Scan{Index: "i"}) })
	w.apply(put("u", 0, cell("a", "", "", only("u", "k"))))
	r = w.apply(store.Batch{Thread: "t", Put: []store.Cell{cell("a", "2", "y"), cell("a", "1", "x")}, Append: []store.Entry{{Log: "l", Seq: 1}}})
	w.apply(store.Batch{Thread: "t", Base: r, Drop: true, Put: []store.Cell{cell("a", "3", "z")}, Append: []store.Entry{{Log: "l", Seq: 1, Data: []byte("new")}}})
	w.equal("dropped and put", w.cells("t", store.All("a")), "a/3=z")
}

func dropRevision(w *world) {
	old := w.apply(put("t", 0, cell("a", "", "x")))
	w.apply(store.Batch{Thread: "t", Base: old, Drop: true})
	fresh := w.apply(put("t", 0, cell("a", "", "y")))
	if fresh <= old {
		w.Errorf("revision %d after %d", fresh, old)
	}
	w.refuse(store.ErrConflict, put("t", old, cell("a", "", "z")))
}

func scan(w *world) {
	var want []string
	for i := range 25 {
		thread := fmt.Sprintf("t%02d", i%5)
		key := fmt.Sprintf("k%02d", 24-i)
		w.apply(put(thread, store.AnyRevision, cell("a", key, "v", at("i", "g", key[:2]))))
		want = append(want, fmt.Sprintf("%s|%s|%s", key[:2], thread, key))
	}
	w.apply(put("other", 0, cell("a", "", "v", at("i", "h", "k1"))))
	slices.Sort(want)
	var got []string
	var after store.Ref
	for {
		page, err := w.one.Scan(w.Context(), store.Scan{Index: "i", Group: "g", After: after, Limit: 4})
		w.must(err)
		for _, r := range page {
			got = append(got, fmt.Sprintf("%s|%s|%s", r.IndexKey, r.Thread, r.Key))
			if r.Value != nil {
				w.Errorf("a value that was not asked for: %q", r.Value)
			}
		}
		if len(page) < 4 {
			break
		}
		after = page[len(page)-1]
	}
	if !slices.Equal(got, want) {
		w.Errorf("got %q, want %q", got, want)
	}
	w.equal("range", w.scan(store.Scan{Index: "i", Group: "g", From: "k1", To: "k2", Limit: 1}), "t00/a/k14@k1")
	w.equal("empty range", w.scan(store.Scan{Index: "i", Group: "g", From: "k3"}), "")
	page, err := w.one.Scan(w.Context(), store.Scan{Index: "i", Group: "g"})
	w.must(err)
	w.equal("no limit", fmt.Sprint(len(page)), "0")
}

func scanValues(w *world) {
	w.apply(put("t", 0, cell("a", "1", "one", at("i", "", "x")), cell("b", "1", "two", at("i", "", "x"))))
	w.equal("values", w.scan(store.Scan{Index: "i", Values: true}), "t/a/1@x=one t/b/1@x=two")
}

func count(w *world) {
	for i := range 6 {
		w.apply(put(fmt.Sprint("t", i), 0, cell("a", "", "", at("i", fmt.Sprint("g", i%2), ""))))
	}
	w.apply(put("t0", store.AnyRevision, cell("a", "", "", at("i", "g1", ""))))
	see := func(s store.Store) string {
		got, err := s.Count(w.Context(), "i")
		w.must(err)
		return fmt.Sprint(got)
	}
	w.equal("count", see(w.one), "map[g0:2 g1:4]")
	w.soon("count", see(w.one), func() string { return see(w.other) })
	none, err := w.one.Count(w.Context(), "none")
	w.must(err)
	w.equal("another index", fmt.Sprint(len(none)), "0")
}

func unique(w *world) {
	r := w.apply(put("t", 0, cell("a", "1", "", only("u", "k"))))
	w.refuse(store.ErrExists, put("v", 0, cell("a", "1", "", only("u", "k"))))
	w.refuse(store.ErrExists, put("t", r, cell("a", "2", "", only("u", "k"))))
	w.refuse(store.ErrExists, put("t", r, cell("a", "2", "", only("u", "x")), cell("a", "3", "", only("u", "x"))))
	r = w.apply(put("t", r, cell("a", "1", "again", only("u", "k")), cell("b", "", "", at("u", "", "not unique"))))
	r = w.apply(put("t", r, cell("a", "1", "", only("u", "k2")), cell("a", "2", "", only("u", "k"))))
	w.equal("exchanged", w.scan(store.Scan{Index: "u", From: "k", To: "l"}), "t/a/2@k t/a/1@k2")
	w.apply(store.Batch{Thread: "t", Base: r, Delete: []store.Range{store.One("a", "2")}, Put: []store.Cell{cell("a", "3", "", only("u", "k"))}})
	w.apply(store.Batch{Thread: "t", Base: store.AnyRevision, Delete: []store.Range{store.One("a", "3")}})
	w.apply(put("v", 0, cell("a", "1", "", only("u", "k"))))
}
