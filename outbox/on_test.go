package outbox_test

import (
	"testing"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// An entry whose value has no time is an error, and an empty one is none.
func TestOn_entries(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	box := outbox.On(s)
	seq, err := box.Append(t.Context(), outbox.Change{Thread: "t", Data: []byte{}})
	if err != nil || seq == 0 {
		t.Fatalf("number %d, %v", seq, err)
	}
	got, err := box.Pending(t.Context(), "t", 0, 2)
	if err != nil || len(got) != 1 || got[0].Data == nil || len(got[0].Data) != 0 || !got[0].At.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	damaged := store.Cell{Kind: "outbox-entry", Key: store.Number(7), Value: []byte("short")}
	if _, err := s.Apply(t.Context(), store.Batch{Thread: "t", Base: store.AnyRevision, Put: []store.Cell{damaged}}); err != nil {
		t.Fatal(err)
	}
	if got, err := box.Pending(t.Context(), "t", seq, 2); err == nil {
		t.Errorf("got %+v", got)
	}
}
