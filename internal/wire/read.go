package wire

import (
	"encoding/binary"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// What a number is.
const (
	notNumber = iota
	isInteger
	isFloat
)

func isMap(c byte) bool {
	return msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32
}

func isArray(c byte) bool {
	return msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32
}

// big reads an unsigned number of 1, 2, 4 or 8 bytes.
func (d *decoder) big(width int) uint64 {
	at := d.pos
	d.pos += width
	switch width {
	case 1:
		return uint64(d.data[at])
	case 2:
		return uint64(binary.BigEndian.Uint16(d.data[at:]))
	case 4:
		return uint64(binary.BigEndian.Uint32(d.data[at:]))
	}
	return binary.BigEndian.Uint64(d.data[at:])
}

// span passes over a string or binary value and returns where its bytes are.
func (d *decoder) span() (from, to int) {
	c := d.data[d.pos]
	d.pos++
	var n int
	switch {
	case msgpcode.IsFixedString(c):
		n = int(c & msgpcode.FixedStrMask)
	case c == msgpcode.Str8 || c == msgpcode.Bin8:
		n = int(d.big(1))
	case c == msgpcode.Str16 || c == msgpcode.Bin16:
		n = int(d.big(2))
	default:
		n = int(d.big(4)) // scan found as many bytes
	}
	from = d.pos
	d.pos += n
	return from, d.pos
}

// count reads the header of a map or an array.
func (d *decoder) count() int {
	c := d.data[d.pos]
	d.pos++
	switch c {
	case msgpcode.Map16, msgpcode.Array16:
		return int(d.big(2))
	case msgpcode.Map32, msgpcode.Array32:
		return int(d.big(4)) // scan found as many entries
	}
	return int(c & 0x0f)
}

// number reads a number, if one is next. An integer beyond int64 is a float.
func (d *decoder) number() (i int64, f float64, kind int) {
	c := d.data[d.pos]
	switch {
	case msgpcode.IsFixedNum(c):
		d.pos++
		return int64(int8(c)), 0, isInteger //nolint:gosec // it is one
	case c == msgpcode.Float:
		d.pos++
		return 0, float64(math.Float32frombits(uint32(d.big(4)))), isFloat //nolint:gosec // four bytes
	case c == msgpcode.Double:
		d.pos++
		return 0, math.Float64frombits(d.big(8)), isFloat
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		d.pos++
		u := d.big(1 << (c - msgpcode.Uint8))
		if u > math.MaxInt64 {
			return 0, float64(u), isFloat
		}
		return int64(u), 0, isInteger
	case c >= msgpcode.Int8 && c <= msgpcode.Int64:
		d.pos++
		width := 1 << (c - msgpcode.Int8)
		unused := 64 - 8*width
		return int64(d.big(width)<<unused) >> unused, 0, isInteger //nolint:gosec // the sign comes down
	}
	return 0, 0, notNumber
}

// skip passes over a value.
func (d *decoder) skip() {
	for values := 1; values > 0; values-- {
		switch c := d.data[d.pos]; {
		case msgpcode.IsString(c) || msgpcode.IsBin(c):
			d.span()
		case isMap(c):
			values += 2 * d.count()
		case isArray(c):
			values += d.count()
		default:
			if _, _, kind := d.number(); kind == notNumber {
				d.pos++ // nil, false or true
			}
		}
	}
}
