package plugin

import (
	"unsafe"

	"github.com/mortise-dev/mortise/sdk/go/internal/unsent"
)

//go:wasmimport mortise:host/1 messages_read
func messagesRead(from, to uint32, at unsafe.Pointer, n uint32) int64

func init() {
	unsent.Read = func(dst []byte, from, to int) int64 {
		return messagesRead(uint32(from), uint32(to), unsafe.Pointer(unsafe.SliceData(dst)), uint32(len(dst)))
	}
}
