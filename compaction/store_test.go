package compaction_test

import (
	"testing"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.TestStore(t, func(*testing.T) (compaction.Store, func() compaction.Store) {
		m := compaction.NewMemory()
		return m, func() compaction.Store { return m }
	})
}

// A thread's events do not grow without end.
func TestMemoryForgetsEvents(t *testing.T) {
	t.Parallel()
	m := compaction.NewMemory()
	for i := range 2500 {
		if err := m.Record(compaction.Event{Thread: thread, Attempt: i}); err != nil {
			t.Fatal(err)
		}
	}
	got := m.Events(thread)
	if len(got) > 1000 || len(got) < 700 || got[len(got)-1].Attempt != 2499 || got[0].Attempt != 2500-len(got) {
		t.Errorf("%d events, from %d on", len(got), got[0].Attempt)
	}
}
