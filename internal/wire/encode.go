package wire

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// maxKept is the largest buffer, in bytes, that goes back to the pool.
const maxKept = 1 << 20

// encoder writes values through the library's primitives. The library's own way
// with structs would omit a dynamic value of 0, false or "", which are answers.
type encoder struct {
	buf   bytes.Buffer
	out   *msgpack.Encoder
	depth int
}

var encoders = sync.Pool{ //nolint:gochecknoglobals // buffers for reuse; a pool holds no state
	New: func() any {
		e := &encoder{}
		e.out = msgpack.NewEncoder(&e.buf)
		return e
	},
}

func marshalMessagePack(v any) (out []byte, err error) {
	err = lendMessagePack(v, 0, func(data []byte) error {
		out = bytes.Clone(data)
		return nil
	})
	return out, err
}

// lendMessagePack encodes v, which stands inside depth maps and arrays, and lends use
// the buffer.
func lendMessagePack(v any, depth int, use func(data []byte) error) error {
	e, ok := encoders.Get().(*encoder)
	if !ok {
		return fmt.Errorf("wire: pool: not an encoder")
	}
	e.buf.Reset()
	e.depth = depth
	err := e.dynamic(v)
	if err == nil {
		err = use(e.buf.Bytes())
	}
	if e.buf.Cap() <= maxKept {
		encoders.Put(e)
	}
	return err
}

func (e *encoder) enter() error {
	e.depth++
	if e.depth > MaxDepth {
		return fmt.Errorf("wire: nests deeper than %d: %w", MaxDepth, ErrValue)
	}
	return nil
}

func (e *encoder) text(s string) error {
	return e.out.EncodeString(strings.ToValidUTF8(s, "\uFFFD"))
}

func (e *encoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("wire: a number that is not finite: %w", ErrValue)
	}
	return e.out.EncodeFloat64(f)
}

func (e *encoder) unsigned(u uint64) error {
	if u > math.MaxInt64 {
		return fmt.Errorf("wire: an integer beyond int64: %w", ErrValue)
	}
	return e.out.EncodeUint(u)
}

// dynamic writes the usual dynamic values without reflection.
func (e *encoder) dynamic(v any) error {
	switch v := v.(type) {
	case nil:
		return e.out.EncodeNil()
	case string:
		return e.text(v)
	case bool:
		return e.out.EncodeBool(v)
	case int64:
		return e.out.EncodeInt(v)
	case float64:
		return e.float(v)
	case []any:
		return e.list(v)
	case map[string]any:
		return e.object(v)
	}
	return e.value(reflect.ValueOf(v))
}

func (e *encoder) list(v []any) error {
	if v == nil {
		return e.out.EncodeNil()
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.out.EncodeArrayLen(len(v)); err != nil {
		return err
	}
	for i := range v {
		if err := e.dynamic(v[i]); err != nil {
			return err
		}
	}
	e.depth--
	return nil
}

func (e *encoder) object(v map[string]any) error {
	if v == nil {
		return e.out.EncodeNil()
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.out.EncodeMapLen(len(v)); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(v)) {
		if err := e.text(k); err != nil {
			return err
		}
		if err := e.dynamic(v[k]); err != nil {
			return err
		}
	}
	e.depth--
	return nil
}

// value writes a value of any other type that the contract uses.
func (e *encoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		return e.text(v.String())
	case reflect.Bool:
		return e.out.EncodeBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return e.out.EncodeInt(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return e.unsigned(v.Uint())
	case reflect.Float32, reflect.Float64:
		return e.float(v.Float())
	case reflect.Interface:
		return e.dynamic(v.Interface())
	case reflect.Pointer:
		if v.IsNil() {
			return e.out.EncodeNil()
		}
		return e.pointer(v)
	case reflect.Struct:
		return e.structure(v)
	case reflect.Slice:
		return e.slice(v)
	case reflect.Map:
		return e.mapping(v)
	default:
		return fmt.Errorf("wire: type %s: %w", v.Type(), ErrValue)
	}
}

// pointer counts towards the depth when a cycle of pointers is possible.
func (e *encoder) pointer(v reflect.Value) error {
	if k := v.Elem().Kind(); k != reflect.Pointer && k != reflect.Interface {
		return e.value(v.Elem())
	}
	if err := e.enter(); err != nil {
		return err
	}
	err := e.value(v.Elem())
	e.depth--
	return err
}

func (e *encoder) structure(v reflect.Value) error {
	p, err := planOf(v.Type())
	if err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	var omit uint64
	n := len(p.fields)
	for i, f := range p.fields {
		if f.omitEmpty && empty(v.Field(f.index)) {
			omit |= 1 << i
			n--
		}
	}
	if err := e.out.EncodeMapLen(n); err != nil {
		return err
	}
	for i, f := range p.fields {
		if omit&(1<<i) != 0 {
			continue
		}
		if err := e.out.EncodeString(f.name); err != nil {
			return err
		}
		if err := e.value(v.Field(f.index)); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	e.depth--
	return nil
}

func (e *encoder) slice(v reflect.Value) error {
	if v.IsNil() {
		return e.out.EncodeNil()
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return e.out.EncodeBytes(v.Bytes())
	}
	if err := e.enter(); err != nil {
		return err
	}
	if err := e.out.EncodeArrayLen(v.Len()); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	e.depth--
	return nil
}

// mapping writes a map with keys of kind string by way of map[string]any.
func (e *encoder) mapping(v reflect.Value) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("wire: type %s: a key must be a string: %w", v.Type(), ErrValue)
	}
	if v.IsNil() {
		return e.out.EncodeNil()
	}
	m := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		m[iter.Key().String()] = iter.Value().Interface()
	}
	return e.object(m)
}
