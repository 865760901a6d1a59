package egress

import (
	"bytes"
	"encoding/binary"
)

// index finds many needles in one pass over a text. It is not changed once it is
// in use. A nil index finds nothing.
type index struct {
	// seen has a bit for each hash of the first bytes of a needle.
	seen     [1 << 10]uint64
	byPrefix map[uint32][]needle
}

// prefix is how many bytes of a needle are hashed; no needle is shorter than a secret.
const prefix = 4

func newIndex(needles []needle) *index {
	x := &index{byPrefix: map[uint32][]needle{}}
	for _, n := range needles {
		if len(n.text) < prefix {
			continue // formsOf makes none
		}
		key := binary.LittleEndian.Uint32(n.text)
		x.seen[slot(key)>>6] |= 1 << (slot(key) & 63)
		x.byPrefix[key] = append(x.byPrefix[key], n)
	}
	return x
}

// slot hashes to 16 bits.
func slot(key uint32) uint32 { return key * 2654435761 >> 16 }

// search calls yield for every place of a text in lower case where a needle is, from the left.
func (x *index) search(text []byte, yield func(from int, n needle)) {
	if x == nil {
		return
	}
	for i := 0; i+prefix <= len(text); i++ {
		key := binary.LittleEndian.Uint32(text[i:])
		if x.seen[slot(key)>>6]&(1<<(slot(key)&63)) == 0 {
			continue
		}
		for _, n := range x.byPrefix[key] {
			if bytes.HasPrefix(text[i:], n.text) {
				yield(i, n)
			}
		}
	}
}

// inName reports whether the name of a header tells a secret.
func (x *index) inName(name string) bool {
	found := false
	if x != nil {
		x.search(lower([]byte(name)), func(int, needle) { found = true })
	}
	return found
}
