package queue

import (
	"fmt"
	"testing"
)

// TestMemory holds that what is remembered is bounded in number and size, and that neither bound counts for what this process has claimed.
func TestMemory(t *testing.T) {
	t.Parallel()
	var m memory
	large := &seen{last: &view{cells: map[cellID][]byte{{kindRequest, "d"}: make([]byte, rememberedBytes+1)}}}
	if m.keep("claimed", large, nowClaimed) {
		t.Error("a thread was claimed before its first claim")
	}
	if !m.keep("claimed", large, asBefore) {
		t.Error("a claim is forgotten")
	}
	for i := range 3 * rememberedThreads {
		m.keep(fmt.Sprint("t", i), new(seen), nowFree)
	}
	if n := len(m.of); n > rememberedThreads || n < rememberedThreads-1 || n != len(m.order) {
		t.Errorf("%d threads are remembered, %d in order, want %d", n, len(m.order), rememberedThreads)
	}
	if m.get("claimed") != large {
		t.Error("a thread that is claimed is forgotten")
	}
	if m.get("t0") != nil || m.get(fmt.Sprint("t", 3*rememberedThreads-1)) == nil {
		t.Error("not the latest ones are remembered")
	}
	m.keep("claimed", large, nowFree)
	if m.get("claimed") != nil {
		t.Error("a large thread that is not claimed any more is remembered")
	}
}
