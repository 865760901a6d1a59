package wire

import (
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// sizes says for the first byte of a value how many bytes it takes, header included, if
// that byte says it: of integers, short strings, nil, false and true.
var sizes = sizesOf() //nolint:gochecknoglobals // a table that nothing changes

func sizesOf() (t [256]uint8) {
	for i := range t {
		c := byte(i)
		switch {
		case msgpcode.IsFixedNum(c) || c == msgpcode.Nil || c == msgpcode.False || c == msgpcode.True:
			t[i] = 1
		case msgpcode.IsFixedString(c):
			t[i] = 1 + c&msgpcode.FixedStrMask
		case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
			t[i] = 1 + 1<<(c-msgpcode.Uint8)
		case c >= msgpcode.Int8 && c <= msgpcode.Int64:
			t[i] = 1 + 1<<(c-msgpcode.Int8)
		}
	}
	return t
}

// Bounds on what a glance sees.
const (
	glanceBytes = 4 << 10
	glanceDepth = 8
)

// glance tells of a small input whether scan has nothing to say about it, if it consists
// of short values in short maps and arrays. It never passes what scan does not.
func glance(data []byte) bool {
	if len(data) > glanceBytes { // so there are fewer values than MaxValues
		return false
	}
	g := glancer{data: data, depth: -1}
	for g.value() {
		for g.depth >= 0 && g.left[g.depth] == 0 {
			g.depth--
		}
		if g.depth < 0 {
			return g.pos == len(data)
		}
		g.left[g.depth]--
		if g.isMap[g.depth] && !g.key() {
			return false
		}
	}
	return false
}

type glancer struct {
	data  []byte
	pos   int
	depth int
	// Of each open map and array what is left, and whether it is a map.
	left  [glanceDepth]uint8
	isMap [glanceDepth]bool
}

func (g *glancer) key() bool {
	if g.pos >= len(g.data) || !msgpcode.IsFixedString(g.data[g.pos]) {
		return false
	}
	g.pos += int(sizes[g.data[g.pos]])
	return true
}

// value passes over a value, of a map or an array over its header.
func (g *glancer) value() bool {
	if g.pos >= len(g.data) {
		return false
	}
	c := g.data[g.pos]
	if n := int(sizes[c]); n > 0 {
		g.pos += n
		return true
	}
	g.depth++
	if c < msgpcode.FixedMapLow || c > msgpcode.FixedArrayHigh || g.depth == glanceDepth {
		return false
	}
	g.pos++
	g.left[g.depth], g.isMap[g.depth] = c&0x0f, c <= msgpcode.FixedMapHigh
	return true
}
