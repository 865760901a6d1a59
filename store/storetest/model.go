package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestModel applies random batches to the store and to memstore, and compares what both answer and what they have then. Some batches come
// twice, some are made for an old revision, and both processes take turns.
func TestModel(t *testing.T, open OpenFunc, rounds int) {
	t.Helper()
	if testing.Short() {
		rounds = min(rounds, 10)
	}
	for seed := range rounds {
		one, other := open(t)
		m := &model{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), 7)), real: []store.Store{one, other}, spec: memstore.New(), names: map[uint64]uint64{}} //nolint:gosec // not a secret
		prefix := fmt.Sprintf("s%d-", seed)
		for step := range 40 {
			m.step(prefix)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		m.compare(prefix)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type model struct {
	t    *testing.T
	rnd  *rand.Rand
	real []store.Store
	spec *memstore.Store
	// names translates revisions of memstore to those of the store.
	names map[uint64]uint64
	old   []store.Batch
}

func (m *model) pick(list ...string) string { return list[m.rnd.IntN(len(list))] }

func (m *model) step(prefix string) {
	b := m.batch(prefix)
	if len(m.old) > 0 && m.rnd.IntN(6) == 0 {
		b = m.old[m.rnd.IntN(len(m.old))]
	}
	m.old = append(m.old, b)
	want, wantErr := m.spec.Apply(m.t.Context(), b)
	if b.Base != store.AnyRevision && b.Base != 0 {
		b.Base = m.names[b.Base]
	}
	got, err := m.real[m.rnd.IntN(2)].Apply(m.t.Context(), b)
	for _, kind := range []error{store.ErrConflict, store.ErrExists, store.ErrInvalid, nil} {
		if kind == nil && (err == nil) != (wantErr == nil) || kind != nil && errors.Is(err, kind) != errors.Is(wantErr, kind) {
			m.t.Fatalf("batch %+v: got %v, want %v", b, err, wantErr)
		}
	}
	if err != nil {
		return
	}
	if known, ok := m.names[want]; ok && known != got {
		m.t.Fatalf("batch %+v: revision %d, and %d the first time", b, got, known)
	}
	m.names[want] = got
	m.read(b.Thread)
}

// batch makes a random batch on few names, so that much of it meets.
func (m *model) batch(prefix string) store.Batch {
	b := store.Batch{Thread: prefix + m.pick("a", "b", "c"), Base: store.AnyRevision}
	if m.rnd.IntN(2) == 0 {
		b.ID = fmt.Sprint("id", m.rnd.Uint32())
	}
	if m.rnd.IntN(3) > 0 {
		s, err := m.spec.Read(m.t.Context(), b.Thread, store.Query{})
		if err != nil {
			m.t.Fatal(err)
		}
		b.Base = s.Revision
		if m.rnd.IntN(8) == 0 && len(m.old) > 0 {
			b.Base = m.old[m.rnd.IntN(len(m.old))].Base
		}
	}
	b.Drop = m.rnd.IntN(12) == 0
	for range m.rnd.IntN(3) {
		r := store.Range{Kind: m.pick("x", "y"), From: m.pick("", "1", "2"), To: m.pick("", "2", "3", "4")}
		if m.rnd.IntN(2) == 0 {
			r = store.One(r.Kind, m.pick("1", "2", "3"))
		}
		b.Delete = append(b.Delete, r)
	}
	for range m.rnd.IntN(4) {
		c := store.Cell{Kind: m.pick("x", "y"), Key: m.pick("1", "2", "3"), Value: fmt.Append(nil, m.rnd.Uint32())}
		if m.rnd.IntN(2) == 0 {
			c.Index = append(c.Index, at(prefix+"i", m.pick("g", "h"), m.pick("1", "2", "3")))
		}
		if m.rnd.IntN(3) == 0 {
			c.Index = append(c.Index, only(prefix+"u", m.pick("1", "2", "3", "4")))
		}
		b.Put = append(b.Put, c)
	}
	if m.rnd.IntN(4) == 0 {
		b.Trim = append(b.Trim, store.Trim{Log: m.pick("l", "m"), Before: uint64(m.rnd.IntN(12))}) //nolint:gosec // small
	}
	for range m.rnd.IntN(3) {
		e := store.Entry{Log: m.pick("l", "m"), Data: fmt.Append(nil, m.rnd.Uint32())}
		if m.rnd.IntN(4) == 0 {
			e.Seq = uint64(1 + m.rnd.IntN(6)) //nolint:gosec // small
		}
		b.Append = append(b.Append, e)
	}
	return b
}

// read compares a thread as both processes have it.
func (m *model) read(thread string) {
	q := store.Query{
		Cells:   []store.Range{store.All("x"), {Kind: "y", From: m.pick("", "2"), Limit: m.rnd.IntN(3)}},
		Entries: []store.Span{{Log: "l", From: uint64(m.rnd.IntN(5)), Limit: m.rnd.IntN(5)}, {Log: "m", Limit: 100}}, //nolint:gosec // small
	}
	want, err := m.spec.Read(m.t.Context(), thread, q)
	if err != nil {
		m.t.Fatal(err)
	}
	if want.Revision != 0 {
		want.Revision = m.names[want.Revision]
	}
	for n, s := range m.real {
		got, err := s.Read(m.t.Context(), thread, q)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, list := range [][]store.Cell{got.Cells, want.Cells} {
			for i := range list {
				list[i].Value = append([]byte{}, list[i].Value...)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			m.t.Errorf("thread %q in process %d:\ngot  %+v\nwant %+v", thread, n, got, want)
		}
	}
}

// compare compares the indexes, as the process that wrote last has them.
func (m *model) compare(prefix string) {
	for _, q := range []store.Scan{
		{Index: prefix + "i", Group: "g", Limit: 100, Values: true}, {Index: prefix + "i", Group: "h", Limit: 2}, {Index: prefix + "u", From: "2", To: "4", Limit: 100},
	} {
		want, err := m.spec.Scan(m.t.Context(), q)
		if err != nil {
			m.t.Fatal(err)
		}
		w := &world{T: m.t}
		for _, s := range m.real {
			w.soon("scan", fmt.Sprint(want), func() string {
				got, err := s.Scan(m.t.Context(), q)
				if err != nil {
					m.t.Fatal(err)
				}
				return fmt.Sprint(got)
			})
		}
	}
	want, err := m.spec.Count(m.t.Context(), prefix+"i")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range m.real {
		if got, err := s.Count(m.t.Context(), prefix+"i"); err != nil || !reflect.DeepEqual(got, want) {
			m.t.Errorf("count is %v, %v, want %v", got, err, want)
		}
	}
}
