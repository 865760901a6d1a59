package mortise

import (
	"errors"
	"math"
	"sort"
)

// MaxDepth is how deep maps and arrays may nest, the outermost counted as 1.
const MaxDepth = 64

// Reasons why a value cannot be encoded.
var (
	// ErrValue is a dynamic value of a type that the contract does not know.
	ErrValue = errors.New("mortise: a dynamic value must be nil, bool, a number, string, []byte, []string, []any, map[string]any, map[string]string or Fields")
	// ErrNumber is a float that is not finite, or an integer beyond int64.
	ErrNumber = errors.New("mortise: a number must be finite and an integer must fit in int64")
	// ErrDepth is a value that nests deeper than [MaxDepth].
	ErrDepth = errors.New("mortise: a value nests deeper than 64")
)

// Marshaler is a type of the contract: it writes itself to an [Encoder].
type Marshaler interface{ MarshalTo(e *Encoder) }

// Marshal returns the MessagePack encoding of v. Fields stand in the order of
// the contract and keys of dynamic maps are sorted, so that equal values give
// equal bytes.
func Marshal(v Marshaler) ([]byte, error) {
	var e Encoder
	v.MarshalTo(&e)
	return e.Bytes()
}

// Encoder appends MessagePack to a buffer. The zero Encoder is ready. The first
// error is kept; what follows it is meaningless.
type Encoder struct {
	buf   []byte
	depth int
	err   error
}

// NewEncoder returns an Encoder that appends to buf[:0].
func NewEncoder(buf []byte) *Encoder { return &Encoder{buf: buf[:0]} }

// Reset empties the Encoder and keeps its buffer.
func (e *Encoder) Reset() { *e = Encoder{buf: e.buf[:0]} }

// Bytes returns what was written, until the next Reset, and the first error.
func (e *Encoder) Bytes() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return e.buf, nil
}

// Nil writes nil.
func (e *Encoder) Nil() { e.buf = append(e.buf, 0xc0) }

// Bool writes a bool.
func (e *Encoder) Bool(v bool) {
	if v {
		e.buf = append(e.buf, 0xc3)
		return
	}
	e.buf = append(e.buf, 0xc2)
}

// Int writes an integer in its shortest form.
func (e *Encoder) Int(v int64) {
	switch {
	case v >= 0:
		e.uint(uint64(v))
	case v >= -32:
		e.buf = append(e.buf, byte(v))
	case v >= math.MinInt8:
		e.buf = append(e.buf, 0xd0, byte(v))
	case v >= math.MinInt16:
		e.buf = append(e.buf, 0xd1, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		e.buf = append(e.buf, 0xd2, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	default:
		e.be64(0xd3, uint64(v))
	}
}

func (e *Encoder) uint(v uint64) {
	switch {
	case v <= math.MaxInt8:
		e.buf = append(e.buf, byte(v))
	case v <= math.MaxUint8:
		e.buf = append(e.buf, 0xcc, byte(v))
	case v <= math.MaxUint16:
		e.buf = append(e.buf, 0xcd, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		e.buf = append(e.buf, 0xce, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	default:
		e.be64(0xcf, v)
	}
}

func (e *Encoder) be64(code byte, v uint64) {
	e.buf = append(e.buf, code, byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32),
		byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// Float writes a float64. NaN and infinities are refused with [ErrNumber].
func (e *Encoder) Float(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.fail(ErrNumber)
		return
	}
	e.be64(0xcb, math.Float64bits(v))
}

// Str writes a string. It should be UTF-8; the host replaces what is not.
func (e *Encoder) Str(v string) {
	if n := len(v); n < 32 {
		e.buf = append(e.buf, 0xa0|byte(n))
	} else {
		e.length(n, 0xd9, 0xda, 0xdb)
	}
	e.buf = append(e.buf, v...)
}

// Binary writes bytes, or nil for nil.
func (e *Encoder) Binary(v []byte) {
	if v == nil {
		e.Nil()
		return
	}
	e.length(len(v), 0xc4, 0xc5, 0xc6)
	e.buf = append(e.buf, v...)
}

// length writes a length with the code for one, two or four bytes; a code of 0
// has no one-byte form.
func (e *Encoder) length(n int, code8, code16, code32 byte) {
	switch {
	case n <= math.MaxUint8 && code8 != 0:
		e.buf = append(e.buf, code8, byte(n))
	case n <= math.MaxUint16:
		e.buf = append(e.buf, code16, byte(n>>8), byte(n))
	default:
		e.buf = append(e.buf, code32, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
}

// OpenMap starts a map of n entries: n times a Str and a value, then Close.
func (e *Encoder) OpenMap(n int) {
	if n < 16 {
		e.buf = append(e.buf, 0x80|byte(n))
	} else {
		e.length(n, 0, 0xde, 0xdf)
	}
	e.enter()
}

// OpenArray starts an array of n elements: n values, then Close.
func (e *Encoder) OpenArray(n int) {
	if n < 16 {
		e.buf = append(e.buf, 0x90|byte(n))
	} else {
		e.length(n, 0, 0xdc, 0xdd)
	}
	e.enter()
}

// Close ends the innermost open map or array.
func (e *Encoder) Close() { e.depth-- }

func (e *Encoder) enter() {
	e.depth++
	if e.depth > MaxDepth {
		e.fail(ErrDepth)
	}
}

func (e *Encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// raw writes bytes that are encoded already.
func (e *Encoder) raw(s string) { e.buf = append(e.buf, s...) }

// Value writes a dynamic value. Besides what the contract knows it takes every
// Go number, []string, map[string]string and types of the contract.
func (e *Encoder) Value(v any) {
	if e.err != nil {
		return
	}
	switch v := v.(type) {
	case nil:
		e.Nil()
	case bool:
		e.Bool(v)
	case string:
		e.Str(v)
	case []byte:
		e.Binary(v)
	case float64:
		e.Float(v)
	case float32:
		e.Float(float64(v))
	case []any:
		e.anyList(v)
	case map[string]any:
		e.anyMap(v)
	case Fields:
		v.MarshalTo(e)
	case []string:
		e.stringList(v)
	case map[string]string:
		e.stringMap(v)
	case int:
		e.Int(int64(v))
	case int64:
		e.Int(v)
	default:
		e.other(v)
	}
}

// other writes what comes seldom. Whether a type has a method is asked last, since a
// guest finds out anew in each call.
func (e *Encoder) other(v any) {
	switch v := v.(type) {
	case int8:
		e.Int(int64(v))
	case int16:
		e.Int(int64(v))
	case int32:
		e.Int(int64(v))
	case uint:
		e.unsigned(uint64(v))
	case uint8:
		e.unsigned(uint64(v))
	case uint16:
		e.unsigned(uint64(v))
	case uint32:
		e.unsigned(uint64(v))
	case uint64:
		e.unsigned(v)
	case Marshaler:
		v.MarshalTo(e)
	default:
		e.fail(ErrValue)
	}
}

func (e *Encoder) unsigned(v uint64) {
	if v > math.MaxInt64 {
		e.fail(ErrNumber)
		return
	}
	e.uint(v)
}

func (e *Encoder) anyList(v []any) {
	if v == nil {
		e.Nil()
		return
	}
	e.OpenArray(len(v))
	for i := range v {
		e.Value(v[i])
	}
	e.Close()
}

func (e *Encoder) stringList(v []string) {
	if v == nil {
		e.Nil()
		return
	}
	e.OpenArray(len(v))
	for i := range v {
		e.Str(v[i])
	}
	e.Close()
}

func (e *Encoder) intList(v []int) {
	if v == nil {
		e.Nil()
		return
	}
	e.OpenArray(len(v))
	for _, i := range v {
		e.Int(int64(i))
	}
	e.Close()
}

func (e *Encoder) anyMap(v map[string]any) {
	if v == nil {
		e.Nil()
		return
	}
	var few [8]string // most maps need no memory for their keys
	keys := few[:0]
	for k := range v {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	e.OpenMap(len(keys))
	for _, k := range keys {
		e.Str(k)
		e.Value(v[k])
	}
	e.Close()
}

func (e *Encoder) stringMap(v map[string]string) {
	m := make(map[string]any, len(v))
	for k, s := range v {
		m[k] = s
	}
	e.anyMap(m)
}
