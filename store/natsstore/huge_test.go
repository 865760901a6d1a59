package natsstore_test

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// TestLargest: a value of the largest size comes back.
func TestLargest(t *testing.T) {
	t.Parallel()
	testskip.Long(t) // 64 MiB
	testskip.Plain(t)
	url := serve(t).ClientURL()
	name := newStream()
	patient := func(c *natsstore.Config) { c.Patience = 2 * time.Minute }
	s := open(t, url, name, patient)
	value := make([]byte, store.MaxValue)
	value[0], value[store.MaxValue-1] = 1, 2
	apply(t, s, store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a", Value: value}}})
	snap, err := open(t, url, name, patient).Read(t.Context(), "t", store.Query{Cells: []store.Range{store.All("a")}})
	if err != nil || len(snap.Cells) != 1 || len(snap.Cells[0].Value) != store.MaxValue || snap.Cells[0].Value[store.MaxValue-1] != 2 {
		t.Errorf("%d cells, %v", len(snap.Cells), err)
	}
}
