package natsstore_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// TestEntriesOnServer: entries that are not kept in memory are read from the servers, in operations and after a roll-up, also large ones.
func TestEntriesOnServer(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	name := newStream()
	little := func(c *natsstore.Config) { c.Memory = 1 }
	s := open(t, url, name, little)
	var want [][]byte
	for i := range 30 {
		size := 100
		if i%10 == 9 {
			size = 700 << 10
		}
		data := bytes.Repeat(fmt.Appendf(nil, "%03d", i), size/3)
		want = append(want, data)
		apply(t, s, store.Batch{Thread: "t", Base: store.AnyRevision, Append: []store.Entry{{Log: "l", Data: data}}})
	}
	check := func(s store.Store) {
		t.Helper()
		snap, err := s.Read(t.Context(), "t", store.Query{Entries: []store.Span{{Log: "l", Limit: 100}}})
		if err != nil || len(snap.Entries) != len(want) {
			t.Fatalf("%d entries, %v", len(snap.Entries), err)
		}
		for i, e := range snap.Entries {
			if !bytes.Equal(e.Data, want[i]) {
				t.Errorf("entry %d has %d bytes, want %d", e.Seq, len(e.Data), len(want[i]))
			}
		}
	}
	check(s)
	operator := streamOf(t, url, name)
	value := make([]byte, 300<<10)
	for i := range 30 { // until there is a roll-up
		value[0] = byte(i)
		apply(t, s, store.Batch{Thread: "t", Base: store.AnyRevision, Put: []store.Cell{{Kind: "a", Value: value}}})
	}
	eventually(t, "there are no chunks", func() bool { return len(state(t, operator, name+".e.>").Subjects) == 1 })
	check(s)
	check(open(t, url, name, little))
	apply(t, s, store.Batch{Thread: "t", Base: store.AnyRevision, Trim: []store.Trim{{Log: "l", Before: 26}}})
	want = want[25:]
	check(s)
	check(open(t, url, name))
}
