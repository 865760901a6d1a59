//go:build wasip1

package rt

import (
	"unsafe"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/block"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport mortise:host/1 input_read
func inputRead(to unsafe.Pointer)

//go:wasmimport mortise:host/1 output_write
func outputWrite(from unsafe.Pointer, n uint32)

//go:wasmimport extism:host/env error_set
func errorSet(at uint64)

// The buffers are kept for their capacity only; nothing in them is read by a
// later call.
var (
	inputBuf []byte
	outputs  mortise.Encoder
)

// maxError bounds an error text, in bytes.
const maxError = 4 << 10

// Serve runs h on the input of the current call and returns the export's result.
func Serve(h Handler) int32 {
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

func readInput() []byte {
	n := int(inputLength())
	if n == 0 {
		return nil
	}
	if cap(inputBuf) < n {
		inputBuf = make([]byte, n)
	}
	in := inputBuf[:n]
	inputRead(unsafe.Pointer(&in[0]))
	return in
}
