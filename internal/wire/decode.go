package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// decoder fills values from an input that scan has passed. It uses the
// library's primitives; the library's own way with structs takes arrays for
// structs, wraps large integers and panics when a dynamic field comes twice.
type decoder struct {
	data []byte
	in   bytes.Reader
	lib  *msgpack.Decoder
}

func unmarshalMessagePack(data []byte, v reflect.Value) error {
	if err := scan(data); err != nil {
		return err
	}
	d := &decoder{data: data}
	d.in.Reset(data)
	d.lib = msgpack.GetDecoder()
	d.lib.Reset(&d.in)
	defer msgpack.PutDecoder(d.lib)
	v.SetZero()
	err := d.value(v)
	if err == nil {
		return nil
	}
	if known := (*DecodeError)(nil); errors.As(err, &known) {
		return known
	}
	return fmt.Errorf("wire: %s: %w", MessagePack, err)
}

func (d *decoder) offset() int { return len(d.data) - d.in.Len() }

func (d *decoder) fault(at int, what string) error {
	return &DecodeError{Format: MessagePack, Offset: at, What: what}
}

// value fills v, which is zero.
func (d *decoder) value(v reflect.Value) error {
	c, err := d.lib.PeekCode()
	if err != nil {
		return err
	}
	if c == msgpcode.Nil {
		return d.lib.DecodeNil()
	}
	switch v.Kind() {
	case reflect.String:
		s, err := d.text(c)
		v.SetString(s)
		return err
	case reflect.Bool:
		if c != msgpcode.True && c != msgpcode.False {
			return d.fault(d.offset(), "not a bool")
		}
		b, err := d.lib.DecodeBool()
		v.SetBool(b)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return d.integer(c, v)
	case reflect.Float32, reflect.Float64:
		return d.float(c, v)
	case reflect.Struct:
		return d.structure(c, v)
	case reflect.Slice:
		return d.slice(c, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem())
	case reflect.Interface:
		if v.NumMethod() == 0 {
			x, err := d.dynamic(c)
			if err == nil && x != nil {
				v.Set(reflect.ValueOf(x))
			}
			return err
		}
	case reflect.Map:
		return d.mapping(c, v)
	default:
	}
	return fmt.Errorf("type %s: %w", v.Type(), ErrValue)
}

func (d *decoder) text(c byte) (string, error) {
	if !msgpcode.IsString(c) {
		return "", d.fault(d.offset(), "not a string")
	}
	s, err := d.lib.DecodeString()
	return strings.ToValidUTF8(s, "\uFFFD"), err
}

// number returns an int64 or a float64; an integer beyond int64 is a float64.
func (d *decoder) number(c byte) (any, error) {
	switch {
	case c == msgpcode.Float || c == msgpcode.Double:
		return d.lib.DecodeFloat64()
	case c == msgpcode.Uint64:
		u, err := d.lib.DecodeUint64()
		if u > math.MaxInt64 {
			return float64(u), err
		}
		return int64(u), err
	case msgpcode.IsFixedNum(c) || c >= msgpcode.Uint8 && c <= msgpcode.Int64:
		return d.lib.DecodeInt64()
	}
	return nil, d.fault(d.offset(), "not a number")
}

func (d *decoder) integer(c byte, v reflect.Value) error {
	at := d.offset()
	n, err := d.number(c)
	if err != nil {
		return err
	}
	i, ok := n.(int64)
	if f, isFloat := n.(float64); isFloat && f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64 {
		i, ok = int64(f), true
	}
	if !ok || v.OverflowInt(i) {
		return d.fault(at, "not an integer that fits in "+v.Kind().String())
	}
	v.SetInt(i)
	return nil
}

func (d *decoder) float(c byte, v reflect.Value) error {
	n, err := d.number(c)
	switch n := n.(type) {
	case int64:
		v.SetFloat(float64(n))
	case float64:
		v.SetFloat(n)
	}
	return err
}

func isMap(c byte) bool {
	return msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32
}

func isArray(c byte) bool {
	return msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32
}

func (d *decoder) structure(c byte, v reflect.Value) error {
	p, err := planOf(v.Type())
	if err != nil {
		return err
	}
	if !isMap(c) {
		return d.fault(d.offset(), "not a map")
	}
	n, err := d.lib.DecodeMapLen()
	if err != nil {
		return err
	}
	var seen uint64
	for range n {
		at := d.offset()
		key, err := d.key()
		if err != nil {
			return err
		}
		i, known := p.byName[string(key)]
		if !known {
			if err := d.lib.Skip(); err != nil {
				return err
			}
			continue
		}
		f := p.fields[i]
		if seen&(1<<i) != 0 {
			return under(d.fault(at, "comes twice"), f.name)
		}
		seen |= 1 << i
		if err := d.value(v.Field(f.index)); err != nil {
			return under(err, f.name)
		}
	}
	return nil
}

// key returns the next key, which is a part of the input.
func (d *decoder) key() ([]byte, error) {
	n, err := d.lib.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	start := d.offset()
	if _, err := d.in.Seek(int64(n), io.SeekCurrent); err != nil {
		return nil, err
	}
	return d.data[start : start+n], nil
}

func (d *decoder) slice(c byte, v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if !msgpcode.IsBin(c) {
			return d.fault(d.offset(), "not binary")
		}
		b, err := d.lib.DecodeBytes()
		v.SetBytes(b)
		return err
	}
	if !isArray(c) {
		return d.fault(d.offset(), "not an array")
	}
	n, err := d.lib.DecodeArrayLen()
	if err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		if err := d.value(v.Index(i)); err != nil {
			return under(err, "["+strconv.Itoa(i)+"]")
		}
	}
	return nil
}

func (d *decoder) mapping(c byte, v reflect.Value) error {
	if v.Type() != reflect.TypeFor[map[string]any]() {
		return fmt.Errorf("type %s: %w", v.Type(), ErrValue)
	}
	if !isMap(c) {
		return d.fault(d.offset(), "not a map")
	}
	m, err := d.object()
	v.Set(reflect.ValueOf(m))
	return err
}
