//go:build wasip1

package rt

import (
	"runtime"

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
	// runtime's sizes lie further apart above small.
	prepared  = 2 << 10
	small     = 1 << 10
	smallStep = 16
	step      = 128
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

var (
	ballast  [headroom / piece][]byte
	bytes    []byte
	pointers []*byte
)

// The room is taken and given back to the collector, so that it is free heap. Then one
// object of each size is made, because the first of a size costs the runtime more
// than hundreds after it.
func init() {
	for i := range ballast {
		ballast[i] = make([]byte, piece)
	}
	clear(ballast[:])
	runtime.GC()
	for size := smallStep; size <= prepared; size += smallStep {
		bytes = make([]byte, size)
		pointers = make([]*byte, size/8)
		if size >= small {
			size += step - smallStep
		}
	}
	bytes, pointers = nil, nil
	deepen()
	spare = make([]byte, spareInput)
	outputs = *mortise.NewEncoder(make([]byte, 0, spareOutput))
}
