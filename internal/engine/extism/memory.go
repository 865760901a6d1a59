package extism

import (
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/engine"
)

// memories makes and keeps the linear memories of one instance. go-sdk makes
// the kernel first and the module last.
type memories struct {
	all []*engine.LinearMemory
}

// Allocate implements experimental.MemoryAllocator.
func (m *memories) Allocate(_, limit uint64) experimental.LinearMemory {
	l := &engine.LinearMemory{Limit: limit}
	m.all = append(m.all, l)
	return l
}

func (m *memories) kernel() []byte { return m.at(0) }

// main returns the memory of the main module, which must have one.
func (m *memories) main() []byte { return m.at(len(m.all) - 1) }

func (m *memories) at(n int) []byte {
	if n >= len(m.all) {
		return nil
	}
	return m.all[n].Buf
}

func (m *memories) largest() int {
	n := 0
	for _, l := range m.all {
		n = max(n, len(l.Buf))
	}
	return n
}
