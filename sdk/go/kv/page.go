package kv

import "encoding/binary"

// split reads the keys of a page: each behind its length as a little-endian u32. What
// is cut off is left out.
func split(page []byte) []string {
	var keys []string
	for len(page) >= 4 {
		n := binary.LittleEndian.Uint32(page)
		page = page[4:]
		if uint64(n) > uint64(len(page)) {
			break
		}
		keys = append(keys, string(page[:n]))
		page = page[n:]
	}
	return keys
}
