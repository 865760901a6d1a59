package mailbox

import (
	"fmt"
	"testing"
)

// TestMemory holds that what is remembered is bounded in number and size.
func TestMemory(t *testing.T) {
	t.Parallel()
	var m memory
	large := &seen{last: &view{cells: map[cellID][]byte{{kindRequest, "d"}: make([]byte, rememberedBytes+1)}}}
	m.keep("large", large)
	if m.get("large") != nil {
		t.Error("a large thread is remembered")
	}
	for i := range 3 * rememberedThreads {
		m.keep(fmt.Sprint("t", i), new(seen))
		m.keep("large", large)
	}
	if n := len(m.of); n != rememberedThreads || n != len(m.order) {
		t.Errorf("%d threads are remembered, %d in order, want %d", n, len(m.order), rememberedThreads)
	}
	if m.get("t0") != nil || m.get(fmt.Sprint("t", 3*rememberedThreads-1)) == nil {
		t.Error("not the latest ones are remembered")
	}
}
