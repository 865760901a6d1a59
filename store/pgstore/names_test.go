package pgstore_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/store"
)

// longest returns random bytes, which no compression makes shorter.
func longest(rnd *rand.Rand) string {
	b := make([]byte, store.MaxKey)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return string(b)
}

// TestNames_longest holds that all names may have their greatest length at once, which is more than an index of PostgreSQL takes, and that
// Scan keeps the order also where the names differ after what the index has.
func TestNames_longest(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	thread, kind, name, group, key := longest(rnd), longest(rnd), longest(rnd), longest(rnd), longest(rnd)
	var want []store.Ref
	var cells []store.Cell
	for range 60 {
		c := store.Cell{Kind: kind, Key: longest(rnd), Value: []byte("v")}
		c.Index = []store.IndexKey{{Name: name, Group: group, Key: key}, {Name: "u", Key: longest(rnd), Unique: true}}
		cells = append(cells, c)
		want = append(want, store.Ref{IndexKey: key, Thread: thread, Kind: kind, Key: c.Key, Value: c.Value})
	}
	b := put(thread, 0, cells...)
	b.ID, b.Append, b.Notify = longest(rnd), []store.Entry{{Log: longest(rnd)}}, []string{longest(rnd)}
	if _, err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(want, func(a, b store.Ref) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	var got []store.Ref
	for page := []store.Ref{{}}; len(page) > 0; {
		var err error
		if page, err = s.Scan(t.Context(), store.Scan{Index: name, Group: group, After: page[len(page)-1], Limit: 7, Values: true}); err != nil {
			t.Fatal(err)
		}
		got = append(got, page...)
	}
	if fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want) {
		t.Errorf("got %d places, want %d in order", len(got), len(want))
	}
}

// TestValues_largest holds that a cell and an entry may have their greatest size.
func TestValues_largest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("128 MiB")
	}
	s := open(t, config(t))
	value := make([]byte, store.MaxValue)
	value[len(value)-1] = 'x'
	b := put("t", 0, store.Cell{Kind: "a", Value: value})
	b.Append = []store.Entry{{Log: "l", Data: value}}
	if _, err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	out, err := s.Read(t.Context(), "t", store.Query{Cells: []store.Range{store.All("a")}, Entries: []store.Span{{Log: "l", Limit: 1}}})
	if err != nil || len(out.Cells) != 1 || len(out.Entries) != 1 ||
		!bytes.Equal(out.Cells[0].Value, value) || !bytes.Equal(out.Entries[0].Data, value) {
		t.Errorf("%d cells, %d entries, %v", len(out.Cells), len(out.Entries), err)
	}
}
