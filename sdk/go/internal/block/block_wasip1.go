//go:build wasip1

package block

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env store_u64
func storeU64(at, v uint64)

//go:wasmimport extism:host/env store_u8
func storeU8(at uint64, v uint32)

// New copies at most limit bytes of s into a new block and returns its offset.
func New(s string, limit int) uint64 {
	s = s[:min(len(s), limit)]
	at := alloc(uint64(len(s)))
	i := 0
	for ; i+8 <= len(s); i += 8 {
		var word uint64
		for j := range 8 {
			word |= uint64(s[i+j]) << (8 * j)
		}
		storeU64(at+uint64(i), word)
	}
	for ; i < len(s); i++ {
		storeU8(at+uint64(i), uint32(s[i]))
	}
	return at
}
