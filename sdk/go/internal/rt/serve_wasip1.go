//go:build wasip1

package rt

import (
	"runtime"
	"unsafe"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/block"
	"github.com/mortise-dev/mortise/sdk/go/internal/unsent"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport mortise:host/1 input_read
func inputRead(to unsafe.Pointer)

//go:wasmimport mortise:host/1 output_write
func outputWrite(from unsafe.Pointer, n uint32)

//go:wasmimport extism:host/env error_set
func errorSet(at uint64)

// outputs is kept for its capacity only; nothing in it is read by a later call.
var outputs mortise.Encoder

// spare is memory for the input of the first call, which after that is never used
// again. Where the host puts memory back, every call is a first one.
var spare []byte

// maxError bounds an error text, in bytes.
const maxError = 4 << 10

// calls counts the calls since the memory was made, or reset.
var calls int

// keeps is from how many calls on the memory seems to be kept. The template is taken
// after the first.
const keeps = 16

// Serve runs h on the input of the current call and returns the export's result.
func Serve(h Handler) int32 {
	// Go's collector works in goroutines, which no scheduler runs between calls: in a
	// guest that keeps its memory it would begin, and never come to its end.
	if calls++; calls > keeps {
		runtime.Gosched()
	}
	unsent.Calls = calls
	outputs.Reset()
	err := protect(h, readInput(), &outputs)
	if err == nil {
		var out []byte
		if out, err = outputs.Bytes(); err == nil {
			if len(out) > 0 {
				outputWrite(unsafe.Pointer(&out[0]), uint32(len(out)))
			}
			return 0
		}
	}
	message := err.Error()
	if message == "" {
		message = "the guest failed without saying why"
	}
	errorSet(block.New(message, maxError))
	return 1
}

// readInput reads into memory of its own, so that decoding copies nothing and every
// decoded string may be kept.
func readInput() string {
	n := int(inputLength())
	unsent.Room = nil
	if n == 0 {
		return ""
	}
	in := spare
	spare = nil
	if len(in) < n {
		in = make([]byte, n)
	}
	unsent.Room = in[n:] // right behind, so on pages that are written to anyway
	inputRead(unsafe.Pointer(&in[0]))
	return unsafe.String(&in[0], n)
}
