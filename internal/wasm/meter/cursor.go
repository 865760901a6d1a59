package meter

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// What can be wrong with a module.
var (
	ErrUnsupported = errors.New("uses a feature that cannot be metered")
	ErrInvalid     = errors.New("is invalid")
	ErrLimit       = errors.New("exceeds a limit")
)

// cursor reads a range of bytes. After a failure every read returns zero and
// err is set.
type cursor struct {
	b   []byte
	pos int
	err error
	// typed means that typed references of functions are read, too.
	typed bool
}

func (c *cursor) fail(kind error, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s at offset %d", kind, fmt.Sprintf(format, args...), c.pos)
		c.pos = len(c.b)
	}
}

func (c *cursor) more() bool { return c.err == nil && c.pos < len(c.b) }

func (c *cursor) byte() byte {
	if c.pos >= len(c.b) {
		c.fail(ErrInvalid, "unexpected end")
		return 0
	}
	v := c.b[c.pos]
	c.pos++
	return v
}

func (c *cursor) skip(n int) {
	if n < 0 || n > len(c.b)-c.pos {
		c.fail(ErrInvalid, "unexpected end")
		return
	}
	c.pos += n
}

func (c *cursor) take(n int) []byte {
	start := c.pos
	c.skip(n)
	if c.err != nil {
		return nil
	}
	return c.b[start:c.pos]
}

// u32 reads an unsigned LEB128 number of 32 bits.
func (c *cursor) u32() uint32 {
	if c.pos < len(c.b) && c.b[c.pos] < 0x80 { // as most are
		c.pos++
		return uint32(c.b[c.pos-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := c.byte()
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			if v > 0xffffffff {
				c.fail(ErrInvalid, "number is too large")
			}
			return uint32(v & 0xffffffff)
		}
	}
	c.fail(ErrInvalid, "number is too long")
	return 0
}

// i32 reads a signed LEB128 number of 32 bits.
func (c *cursor) i32() int32 {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		b := c.byte()
		v |= int64(b&0x7f) << shift
		if b&0x80 != 0 {
			continue
		}
		if b&0x40 != 0 {
			v -= 1 << (shift + 7)
		}
		if v != int64(int32(v)) {
			c.fail(ErrInvalid, "number is too large")
		}
		return int32(v)
	}
	c.fail(ErrInvalid, "number is too long")
	return 0
}

// leb skips a LEB128 number of at most n bytes.
func (c *cursor) leb(n int) {
	for range n {
		if c.byte()&0x80 == 0 {
			return
		}
	}
	c.fail(ErrInvalid, "number is too long")
}

// Prefixes of a type that refers to a heap type.
const (
	refNullable = 0x63
	refNotNull  = 0x64
)

// valueType reads a type of one byte. A reference to a type of the module has more,
// and would name another type once types are added.
func (c *cursor) valueType() wasm.ValueType {
	t := wasm.ValueType(c.byte())
	if c.typed && (t == refNullable || t == refNotNull) {
		c.heapType()
		return t
	}
	switch t {
	case wasm.I32, wasm.I64, wasm.F32, wasm.F64, wasm.V128, wasm.FuncRef, wasm.ExternRef, wasm.ExnRef:
	default:
		c.fail(ErrUnsupported, "type 0x%02x", byte(t))
	}
	return t
}

// count reads a length that must fit into what is left, least bytes an item.
func (c *cursor) count(least int) int {
	n := c.u32()
	if int64(n)*int64(least) > int64(len(c.b)-c.pos) {
		c.fail(ErrInvalid, "count %d is too large", n)
		return 0
	}
	return int(n)
}

// end fails if something is left.
func (c *cursor) end() {
	if c.more() {
		c.fail(ErrInvalid, "bytes after the end of a section")
	}
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendI64(b []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

func appendBytes(b, content []byte) []byte {
	b = appendU32(b, uint32(len(content)))
	return append(b, content...)
}

func appendName(b []byte, name string) []byte {
	b = appendU32(b, uint32(len(name)))
	return append(b, name...)
}

// heapType reads what a reference refers to: a type of one byte or, if they are read, a type of the module.
func (c *cursor) heapType() {
	if c.typed {
		c.leb(5)
		return
	}
	c.valueType()
}
