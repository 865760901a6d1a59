package mortise

import (
	"math"
	"strconv"
)

// DecodeError describes what is wrong with an input.
type DecodeError struct {
	// Offset is the byte at which it is wrong.
	Offset int
	// What is wrong, without any of the input.
	What string
}

// Error names the byte and what is wrong there.
func (e *DecodeError) Error() string {
	return "mortise: byte " + strconv.Itoa(e.Offset) + ": " + e.What
}

// Unmarshaler is a type of the contract: it reads itself from a [Decoder].
type Unmarshaler interface{ UnmarshalFrom(d *Decoder) }

// Unmarshal replaces v by what data holds. Fields that v does not know are
// skipped, nil is the same as absent, and an integer may be written as a float
// and the other way round.
func Unmarshal(data []byte, v Unmarshaler) error {
	return UnmarshalString(string(data), v)
}

// UnmarshalString is [Unmarshal] of a string, which is not copied: what is decoded
// shares its memory.
func UnmarshalString(data string, v Unmarshaler) error {
	d := Decoder{s: data}
	v.UnmarshalFrom(&d)
	return d.Finish()
}

// Decoder reads MessagePack. It checks every count and length against the bytes
// that remain before it takes memory. The first error is kept, and everything
// read after it is zero.
type Decoder struct {
	s     string
	pos   int
	depth int
	err   error
}

// NewDecoder returns a Decoder of a copy of data.
func NewDecoder(data []byte) *Decoder { return &Decoder{s: string(data)} }

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Finish returns the first error, or an error if bytes are left.
func (d *Decoder) Finish() error {
	if d.err == nil && d.pos < len(d.s) {
		d.fail(d.pos, strconv.Itoa(len(d.s)-d.pos)+" bytes after the end of the value")
	}
	return d.err
}

func (d *Decoder) fail(at int, what string) {
	if d.err == nil {
		d.err = &DecodeError{Offset: at, What: what}
	}
	d.pos = len(d.s)
}

// Null reads a nil if one is next and reports whether it did.
func (d *Decoder) Null() bool {
	if d.pos < len(d.s) && d.s[d.pos] == 0xc0 {
		d.pos++
		return true
	}
	return false
}

// code reads the first byte of a value. After an error it returns nil's.
func (d *Decoder) code() byte {
	if d.pos < len(d.s) {
		c := d.s[d.pos]
		d.pos++
		return c
	}
	d.fail(d.pos, "the input ends where a value is expected")
	return 0xc0
}

// be reads an unsigned number of n bytes, the highest first.
func (d *Decoder) be(n int) uint64 {
	if len(d.s)-d.pos < n {
		d.fail(d.pos, "the input ends inside a value")
		return 0
	}
	var v uint64
	for i := range n {
		v = v<<8 | uint64(d.s[d.pos+i])
	}
	d.pos += n
	return v
}

// take returns the next n bytes, which the header at offset at declared.
func (d *Decoder) take(n uint64, at int) string {
	if d.err != nil {
		return ""
	}
	if rest := len(d.s) - d.pos; n > uint64(rest) {
		d.fail(at, "declares "+strconv.FormatUint(n, 10)+" bytes where "+strconv.Itoa(rest)+" are left")
		return ""
	}
	s := d.s[d.pos : d.pos+int(n)]
	d.pos += int(n)
	return s
}

func (d *Decoder) wrong(at int, want string) {
	d.fail(at, "not "+want)
}

// Str reads a string; nil is empty. Short ones are common.
func (d *Decoder) Str() string {
	at := d.pos
	if at < len(d.s) {
		if n := int(d.s[at]) - 0xa0; uint(n) < 32 && n < len(d.s)-at {
			d.pos = at + 1 + n
			return d.s[at+1 : d.pos]
		}
	}
	return d.longStr(at)
}

func (d *Decoder) longStr(at int) string {
	c := d.code()
	switch {
	case c&0xe0 == 0xa0:
		return d.take(uint64(c&0x1f), at)
	case c == 0xc0:
		return ""
	case c == 0xd9:
		return d.take(d.be(1), at)
	case c == 0xda:
		return d.take(d.be(2), at)
	case c == 0xdb:
		return d.take(d.be(4), at)
	}
	d.wrong(at, "a string")
	return ""
}

// Key reads the key of a map entry.
func (d *Decoder) Key() string {
	if at := d.pos; at < len(d.s) { // most are short
		if n := int(d.s[at]) - 0xa0; uint(n) < 32 && n < len(d.s)-at {
			d.pos = at + 1 + n
			return d.s[at+1 : d.pos]
		}
	}
	if d.pos < len(d.s) && d.s[d.pos] == 0xc0 {
		d.wrong(d.pos, "a string key")
		return ""
	}
	return d.Str()
}

// Binary reads a copy of bytes.
func (d *Decoder) Binary() []byte {
	at := d.pos
	switch d.code() {
	case 0xc0:
		return nil
	case 0xc4:
		return []byte(d.take(d.be(1), at))
	case 0xc5:
		return []byte(d.take(d.be(2), at))
	case 0xc6:
		return []byte(d.take(d.be(4), at))
	}
	d.wrong(at, "binary")
	return nil
}

// Bool reads a bool; nil is false.
func (d *Decoder) Bool() bool {
	at := d.pos
	switch d.code() {
	case 0xc3:
		return true
	case 0xc2, 0xc0:
	default:
		d.wrong(at, "a bool")
	}
	return false
}

// Int reads an integer, also one that is written as a float; nil is 0.
func (d *Decoder) Int() int64 {
	at := d.pos
	if at < len(d.s) && d.s[at] <= 0x7f { // small ones are common
		d.pos++
		return int64(d.s[at])
	}
	i, f, kind := d.number(d.code(), at)
	switch {
	case d.err != nil:
		return 0
	case kind == numInt:
		return i
	case kind == numFloat && f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64:
		return int64(f)
	}
	d.wrong(at, "an integer that fits in 64 bits")
	return 0
}

// int reads an integer that fits in an int.
func (d *Decoder) int() int {
	at := d.pos
	v := d.Int()
	if int64(int(v)) != v {
		d.wrong(at, "an integer that fits")
		return 0
	}
	return int(v)
}

// Float reads a number; nil is 0.
func (d *Decoder) Float() float64 {
	at := d.pos
	i, f, kind := d.number(d.code(), at)
	switch {
	case d.err != nil:
		return 0
	case kind == numInt:
		return float64(i)
	case kind == numFloat:
		return f
	}
	d.wrong(at, "a number")
	return 0
}

const (
	numNone = iota
	numInt
	numFloat
)

// number reads the rest of a number that starts with c at offset at. An
// integer beyond int64 becomes a float.
func (d *Decoder) number(c byte, at int) (i int64, f float64, kind int) {
	switch {
	case c <= 0x7f || c >= 0xe0:
		return int64(int8(c)), 0, numInt
	case c == 0xc0:
		return 0, 0, numInt
	case c >= 0xcc && c <= 0xce:
		return int64(d.be(1 << (c - 0xcc))), 0, numInt
	case c == 0xcf:
		if u := d.be(8); u > math.MaxInt64 {
			return 0, float64(u), numFloat
		} else {
			return int64(u), 0, numInt
		}
	case c == 0xd0:
		return int64(int8(d.be(1))), 0, numInt
	case c == 0xd1:
		return int64(int16(d.be(2))), 0, numInt
	case c == 0xd2:
		return int64(int32(d.be(4))), 0, numInt
	case c == 0xd3:
		return int64(d.be(8)), 0, numInt
	case c == 0xca:
		return 0, d.finite(float64(math.Float32frombits(uint32(d.be(4)))), at), numFloat
	case c == 0xcb:
		return 0, d.finite(math.Float64frombits(d.be(8)), at), numFloat
	}
	return 0, 0, numNone
}

func (d *Decoder) finite(f float64, at int) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.wrong(at, "a finite number")
		return 0
	}
	return f
}

// OpenMap reads the header of a map. When it returns true, n keys and values
// follow, and then Close must be called. It returns false for nil and on error.
func (d *Decoder) OpenMap() (n int, ok bool) {
	at := d.pos
	c := d.code()
	var count uint64
	switch {
	case c&0xf0 == 0x80:
		count = uint64(c & 0x0f)
	case c == 0xde:
		count = d.be(2)
	case c == 0xdf:
		count = d.be(4)
	case c == 0xc0:
		return 0, false
	default:
		d.wrong(at, "a map")
		return 0, false
	}
	return d.enter(count, 2, at)
}

// OpenArray reads the header of an array, as OpenMap does of a map.
func (d *Decoder) OpenArray() (n int, ok bool) {
	at := d.pos
	c := d.code()
	var count uint64
	switch {
	case c&0xf0 == 0x90:
		count = uint64(c & 0x0f)
	case c == 0xdc:
		count = d.be(2)
	case c == 0xdd:
		count = d.be(4)
	case c == 0xc0:
		return 0, false
	default:
		d.wrong(at, "an array")
		return 0, false
	}
	return d.enter(count, 1, at)
}

// enter checks a count of entries that take at least size bytes each.
func (d *Decoder) enter(count, size uint64, at int) (int, bool) {
	if d.err != nil {
		return 0, false
	}
	if rest := len(d.s) - d.pos; count*size > uint64(rest) {
		d.fail(at, "declares "+strconv.FormatUint(count, 10)+" entries where "+strconv.Itoa(rest)+" bytes are left")
		return 0, false
	}
	if d.depth++; d.depth > MaxDepth {
		d.fail(at, "nests deeper than "+strconv.Itoa(MaxDepth))
		return 0, false
	}
	return int(count), true
}

// Close ends the innermost open map or array.
func (d *Decoder) Close() { d.depth-- }

// once fails when a field comes a second time; bit is that of the field.
func (d *Decoder) once(seen *uint64, bit uint64) {
	if *seen&bit != 0 {
		d.fail(d.pos, "a key of this map comes twice")
	}
	*seen |= bit
}
