package engine

import (
	"sync/atomic"
)

// LinearMemory backs a linear memory with a slice of Go.
type LinearMemory struct {
	Buf   []byte
	Limit uint64
	freed atomic.Bool
}

// Reallocate implements experimental.LinearMemory. New bytes are zero.
func (l *LinearMemory) Reallocate(size uint64) []byte {
	if size > l.Limit {
		return nil
	}
	if size > uint64(cap(l.Buf)) {
		room := min(max(size, uint64(cap(l.Buf))*5/4), l.Limit)
		grown := make([]byte, size, room)
		copy(grown, l.Buf)
		l.Buf = grown
	}
	l.Buf = l.Buf[:size]
	return l.Buf
}

// Free implements experimental.LinearMemory. It works once.
func (l *LinearMemory) Free() {
	if !l.freed.Swap(true) {
		l.Buf = nil
	}
}
