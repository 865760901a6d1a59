//go:build wasip1

package conversation

import "unsafe"

//go:wasmimport mortise:host/1 messages_get
func messagesGet(from, to uint32) uint64

//go:wasmimport extism:host/env length
func length(at uint64) uint64

//go:wasmimport extism:host/env load_u64
func loadU64(at uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadU8(at uint64) uint32

//go:wasmimport extism:host/env free
func free(at uint64)

// fetch copies the block that the host made, word by word.
func fetch(from, to int) string {
	at := messagesGet(uint32(from), uint32(to))
	if at == 0 {
		return ""
	}
	out := make([]byte, length(at))
	i := 0
	for ; i+8 <= len(out); i += 8 {
		word := loadU64(at + uint64(i))
		for j := range 8 {
			out[i+j] = byte(word >> (8 * j))
		}
	}
	for ; i < len(out); i++ {
		out[i] = byte(loadU8(at + uint64(i)))
	}
	free(at)
	return unsafe.String(unsafe.SliceData(out), len(out)) // nothing else holds out
}
