package host

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// memories makes and keeps the linear memories of one instance. go-sdk makes
// the kernel first and the module last.
type memories struct {
	all []*linearMemory
}

// Allocate implements experimental.MemoryAllocator.
func (m *memories) Allocate(_, limit uint64) experimental.LinearMemory {
	l := &linearMemory{limit: limit}
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
	return m.all[n].buf
}

func (m *memories) largest() int {
	n := 0
	for _, l := range m.all {
		n = max(n, len(l.buf))
	}
	return n
}

// high tells whether a memory has grown beyond size bytes.
func (m *memories) high(size int) bool { return m.largest() > size }

// linearMemory backs a linear memory with a slice of Go.
type linearMemory struct {
	buf   []byte
	limit uint64
	freed atomic.Bool
}

// Reallocate implements experimental.LinearMemory. New bytes are zero.
func (l *linearMemory) Reallocate(size uint64) []byte {
	if size > l.limit {
		return nil
	}
	if size > uint64(cap(l.buf)) {
		room := min(max(size, uint64(cap(l.buf))*5/4), l.limit)
		grown := make([]byte, size, room)
		copy(grown, l.buf)
		l.buf = grown
	}
	l.buf = l.buf[:size]
	return l.buf
}

// Free implements experimental.LinearMemory. It works once.
func (l *linearMemory) Free() {
	if !l.freed.Swap(true) {
		l.buf = nil
	}
}
