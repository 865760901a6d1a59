package wasm

import (
	"fmt"
	"unicode/utf8"
)

// reader walks over a range of the binary. Offsets are those of the binary.
type reader struct {
	b   []byte
	pos int
	end int
	// items counts what a section has in several places, see add.
	items int
}

func (r *reader) remaining() int { return r.end - r.pos }

func (r *reader) fail(kind error, format string, args ...any) error {
	return failAt(r.pos, kind, format, args...)
}

func failAt(offset int, kind error, format string, args ...any) error {
	return &ParseError{Offset: offset, Detail: fmt.Sprintf(format, args...), Err: kind}
}

// short reports that the range ended too early. Within a section that is
// malformed; at the end of the binary it is truncated.
func (r *reader) short(what string) error {
	if r.end == len(r.b) {
		return r.fail(ErrTruncated, "%s is cut off", what)
	}
	return r.fail(ErrMalformed, "%s goes beyond its section", what)
}

func (r *reader) byte(what string) (byte, error) {
	if r.pos >= r.end {
		return 0, r.short(what)
	}
	c := r.b[r.pos]
	r.pos++
	return c, nil
}

// uleb reads an unsigned LEB128 number of at most bits bits.
func (r *reader) uleb(bits uint, what string) (uint64, error) {
	start := r.pos
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c, err := r.byte(what)
		if err != nil {
			return 0, err
		}
		if left := bits - shift; left < 7 && c>>left != 0 {
			return 0, failAt(start, ErrMalformed, "%s does not fit in %d bits", what, bits)
		}
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			return v, nil
		}
	}
}

func (r *reader) u32(what string) (uint32, error) {
	v, err := r.uleb(32, what)
	return uint32(v), err // uleb bounds it to 32 bits
}

// count reads a number of items of at least least bytes each and refuses one
// that cannot be true.
func (r *reader) count(least int, what string) (int, error) {
	start := r.pos
	n, err := r.u32("count of " + what)
	if err != nil {
		return 0, err
	}
	if int64(n)*int64(least) > int64(r.remaining()) {
		kind := ErrMalformed
		if r.end == len(r.b) {
			kind = ErrTruncated
		}
		return 0, failAt(start, kind, "%d %s do not fit in %d bytes", n, what, r.remaining())
	}
	return int(n), nil
}

func (r *reader) name(what string) (string, error) {
	start := r.pos
	n, err := r.count(1, "bytes of "+what)
	if err != nil {
		return "", err
	}
	raw := r.b[r.pos : r.pos+n]
	if !utf8.Valid(raw) {
		return "", failAt(start, ErrMalformed, "%s is not UTF-8", what)
	}
	r.pos += n
	return string(raw), nil
}

func (r *reader) valueType(what string) (ValueType, error) {
	start := r.pos
	c, err := r.byte(what)
	if err != nil {
		return 0, err
	}
	switch t := ValueType(c); t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef, ExnRef:
		return t, nil
	}
	if c >= 0x60 && c <= 0x74 {
		return 0, failAt(start, ErrUnsupported, "%s 0x%02x", what, c)
	}
	return 0, failAt(start, ErrMalformed, "%s 0x%02x", what, c)
}

func (r *reader) limits(what string) (Limits, error) {
	start := r.pos
	flags, err := r.byte(what)
	if err != nil {
		return Limits{}, err
	}
	if flags > 7 {
		return Limits{}, failAt(start, ErrMalformed, "%s flags 0x%02x", what, flags)
	}
	l := Limits{HasMax: flags&1 != 0, Shared: flags&2 != 0, Is64: flags&4 != 0}
	bits := uint(32)
	if l.Is64 {
		bits = 64
	}
	if l.Min, err = r.uleb(bits, what); err != nil {
		return Limits{}, err
	}
	if l.HasMax {
		if l.Max, err = r.uleb(bits, what); err != nil {
			return Limits{}, err
		}
		if l.Max < l.Min {
			return Limits{}, failAt(start, ErrMalformed, "%s has a maximum below its minimum", what)
		}
	}
	return l, nil
}
