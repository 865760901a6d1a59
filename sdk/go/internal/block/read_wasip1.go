//go:build wasip1

package block

//go:wasmimport extism:host/env length
func length(at uint64) uint64

//go:wasmimport extism:host/env load_u64
func loadU64(at uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadU8(at uint64) uint32

//go:wasmimport extism:host/env free
func free(at uint64)

// Take copies a block that the host made, and frees it. Offset 0 is no block.
func Take(at uint64) []byte {
	if at == 0 {
		return nil
	}
	out := make([]byte, length(at))
	if len(out) == 0 {
		return out
	}
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
	return out
}

// Give copies data into a new block; without data it is offset 0. Drop frees it.
func Give(data string) uint64 {
	if data == "" {
		return 0
	}
	return New(data, len(data))
}

// Drop frees a block that Give made.
func Drop(at uint64) {
	if at != 0 {
		free(at)
	}
}
