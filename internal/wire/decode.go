package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// maxShared is the size of inputs, in bytes, whose strings share one copy of the whole
// input. A caller that keeps a string of a larger one must not keep all of it alive.
const maxShared = 4 << 10

// decoder fills values from an input that scan has passed, so every header and every
// length in it can be relied on.
type decoder struct {
	data []byte
	pos  int
	// shared is data or a copy of it that strings are parts of, empty for a large input.
	shared string
}

// unmarshalMessagePack decodes data, whose memory strings may share if it is owned: if
// nothing changes it any more.
func unmarshalMessagePack(data []byte, v reflect.Value, owned bool) error {
	if err := scan(data); err != nil {
		return err
	}
	d := decoder{data: data}
	switch {
	case len(data) > maxShared:
	case owned:
		d.shared = unsafe.String(unsafe.SliceData(data), len(data))
	default:
		d.shared = string(data)
	}
	v.SetZero()
	err := d.value(shapeOf(v.Type()), v.Addr().UnsafePointer())
	if err == nil {
		return nil
	}
	if known := (*DecodeError)(nil); errors.As(err, &known) {
		return known
	}
	return fmt.Errorf("wire: %s: %w", MessagePack, err)
}

func (d *decoder) fault(at int, what string) error {
	return &DecodeError{Format: MessagePack, Offset: at, What: what}
}

// value fills in the value of a shape at p, which is zero.
func (d *decoder) value(s *shape, p unsafe.Pointer) error {
	c := d.data[d.pos]
	if c == msgpcode.Nil {
		d.pos++
		return nil
	}
	switch s.kind {
	case reflect.String:
		text, err := d.text()
		*(*string)(p) = text
		return err
	case reflect.Struct:
		return d.structure(s, p)
	case reflect.Slice:
		return d.slice(s, p)
	case reflect.Pointer:
		v := reflect.New(s.elem.typ).UnsafePointer()
		*(*unsafe.Pointer)(p) = v
		return d.value(s.elem, v)
	case reflect.Interface:
		if s.typ.NumMethod() == 0 {
			var err error
			*(*any)(p), err = d.dynamic()
			return err
		}
	default:
	}
	return d.other(reflect.NewAt(s.typ, p).Elem())
}

// other fills in a value of a kind that is not as common.
func (d *decoder) other(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		c := d.data[d.pos]
		if c != msgpcode.True && c != msgpcode.False {
			return d.fault(d.pos, "not a bool")
		}
		d.pos++
		v.SetBool(c == msgpcode.True)
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return d.integer(v)
	case reflect.Float32, reflect.Float64:
		return d.float(v)
	case reflect.Map:
		return d.mapping(v)
	default:
	}
	return fmt.Errorf("type %s: %w", v.Type(), ErrValue)
}

// text reads a string, which is repaired where it is not UTF-8.
func (d *decoder) text() (string, error) {
	if !msgpcode.IsString(d.data[d.pos]) {
		return "", d.fault(d.pos, "not a string")
	}
	from, to := d.span()
	var s string
	if d.shared != "" {
		s = d.shared[from:to]
	} else {
		s = string(d.data[from:to])
	}
	if utf8.ValidString(s) {
		return s, nil
	}
	return strings.ToValidUTF8(s, "\uFFFD"), nil
}

func (d *decoder) integer(v reflect.Value) error {
	at := d.pos
	i, f, kind := d.number()
	if kind == isFloat && f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64 {
		i, kind = int64(f), isInteger
	}
	switch {
	case kind == notNumber:
		return d.fault(at, "not a number")
	case kind != isInteger || v.OverflowInt(i):
		return d.fault(at, "not an integer that fits in "+v.Kind().String())
	}
	v.SetInt(i)
	return nil
}

func (d *decoder) float(v reflect.Value) error {
	at := d.pos
	switch i, f, kind := d.number(); kind {
	case isInteger:
		v.SetFloat(float64(i))
	case isFloat:
		v.SetFloat(f)
	default:
		return d.fault(at, "not a number")
	}
	return nil
}

func (d *decoder) structure(s *shape, p unsafe.Pointer) error {
	if s.err != nil {
		return s.err
	}
	if !isMap(d.data[d.pos]) {
		return d.fault(d.pos, "not a map")
	}
	var seen uint64
	next := 0
	for range d.count() {
		at := d.pos
		from, to := d.span()
		i := s.find(d.data[from:to], next)
		if i < 0 {
			d.skip()
			continue
		}
		next = i + 1
		if seen&(1<<i) != 0 {
			return under(d.fault(at, "comes twice"), s.fields[i].name)
		}
		seen |= 1 << i
		f := &s.fields[i]
		if err := d.value(f.shape, unsafe.Add(p, f.offset)); err != nil {
			return under(err, s.fields[i].name)
		}
	}
	return nil
}

func (d *decoder) slice(s *shape, p unsafe.Pointer) error {
	v := reflect.NewAt(s.typ, p).Elem()
	c := d.data[d.pos]
	if s.elem.kind == reflect.Uint8 {
		if !msgpcode.IsBin(c) {
			return d.fault(d.pos, "not binary")
		}
		from, to := d.span()
		v.SetBytes(bytes.Clone(d.data[from:to]))
		return nil
	}
	if !isArray(c) {
		return d.fault(d.pos, "not an array")
	}
	n := d.count()
	if n == 0 {
		v.Set(reflect.MakeSlice(s.typ, 0, 0))
		return nil
	}
	if n == 1 { // as most are
		first := reflect.New(s.elem.typ).UnsafePointer()
		*(*[]byte)(p) = unsafe.Slice((*byte)(first), 1)
		return d.element(s.elem, first, 0)
	}
	v.Grow(n)
	v.SetLen(n)
	first, size := v.UnsafePointer(), s.elem.typ.Size()
	for i := range n {
		if err := d.element(s.elem, unsafe.Add(first, uintptr(i)*size), i); err != nil { // below n
			return err
		}
	}
	return nil
}

func (d *decoder) element(s *shape, p unsafe.Pointer, i int) error {
	if err := d.value(s, p); err != nil {
		return under(err, "["+strconv.Itoa(i)+"]")
	}
	return nil
}

func (d *decoder) mapping(v reflect.Value) error {
	if v.Type() != reflect.TypeFor[map[string]any]() {
		return fmt.Errorf("type %s: %w", v.Type(), ErrValue)
	}
	if !isMap(d.data[d.pos]) {
		return d.fault(d.pos, "not a map")
	}
	m, err := d.object()
	v.Set(reflect.ValueOf(m))
	return err
}
