//go:build wasip1

package rt

import (
	"runtime"
	"unsafe"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// A host that puts memory back after each call does so to the state after
// initialisation, so what is prepared here is there at every call.
const (
	// headroom is how much heap a guest starts with, in bytes. A host has to make a
	// new instance when a call made memory grow; with this much room most calls do
	// not. Untouched pages cost the host nothing.
	// It is taken in pieces, because the runtime keeps a record for each piece of the
	// heap and would make memory grow for more records.
	headroom = 4 << 20
	piece    = 64 << 10
	// spareInput and spareOutput are the sizes of buffers for the first call.
	spareInput  = 64 << 10
	spareOutput = 4 << 10
	// prepared is the size up to which room for objects is prepared, in bytes. The
	// runtime takes them from spans of two pages or more, and notes at the end of a
	// span which of them hold pointers.
	prepared  = 2 << 10
	smallStep = 16
	page      = 4 << 10
	span      = 2 * page
	// spans is after how many of them there is one that was unused.
	spans = 4
	// stack is how deep a call may go before the runtime copies the stack to a larger
	// one, in bytes.
	stack = 16 << 10
)

// deepen makes the stack, on which exports run too, grow now and not in a call.
//
//go:noinline
func deepen() byte {
	var frame [stack]byte
	return frame[len(ballast)]
}

// odd are the sizes that are no multiples of smallStep.
var odd = [...]int{8, 24}

var (
	ballast  [headroom / piece][]byte
	bytes    []byte
	pointers []*byte
)

// prepare makes objects until the runtime is in the second page of a span that was
// unused: what it notes of those that a call makes stands on the same page, and there is
// room for more than most calls need. Each page that a call writes to has to be
// reset.
func prepare(size int, object func(size int) uintptr) {
	last, apart, fresh := uintptr(0), uintptr(0), false
	for range spans * span / size {
		at := object(size) % span
		switch {
		case at == 0:
			fresh, apart = true, 0
		case fresh && apart == 0:
			apart = at
		case at-last != apart: // others are in between
			fresh = false
		}
		if fresh && at >= page {
			return
		}
		last = at
	}
}

// stepFrom is how far the runtime's next size lies behind one. A size that is prepared twice
// is so much less heap until the collector runs, which takes a millisecond.
func stepFrom(size int) int {
	switch {
	case size < 256:
		return smallStep
	case size < 512:
		return 2 * smallStep
	case size < 768:
		return 4 * smallStep
	case size < 1536:
		return 8 * smallStep
	default:
		return 16 * smallStep
	}
}

func plainObject(size int) uintptr {
	bytes = make([]byte, size)
	return uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
}

func pointerObject(size int) uintptr {
	pointers = make([]*byte, size/8)
	return uintptr(unsafe.Pointer(unsafe.SliceData(pointers)))
}

// The room is taken and given back to the collector, so that it is free heap. Then
// objects of each size are made, because the first of a size costs the runtime more
// than hundreds after it.
func init() {
	for i := range ballast {
		ballast[i] = make([]byte, piece)
	}
	clear(ballast[:])
	runtime.GC()
	for _, size := range odd {
		prepare(size, plainObject)
		prepare(size, pointerObject)
	}
	for size := smallStep; size <= prepared; size += stepFrom(size) {
		prepare(size, plainObject)
		prepare(size, pointerObject)
	}
	bytes, pointers = nil, nil
	deepen()
	spare = make([]byte, spareInput)
	outputs = *mortise.NewEncoder(make([]byte, 0, spareOutput))
}
