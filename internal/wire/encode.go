package wire

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// encoder appends values. The library's own way with structs would omit a dynamic value of 0, false or "", which are
// answers.
type encoder struct {
	out   []byte
	depth int
}

// AppendValue writes what Marshal writes of v, which stands inside depth maps and arrays.
func AppendValue(b []byte, v any, depth int) ([]byte, error) {
	e := encoder{out: b, depth: depth}
	err := e.dynamic(v)
	return e.out, err
}

// enter counts one level more. After an error nothing is written any more, so only success leaves.
func (e *encoder) enter() error {
	e.depth++
	if e.depth > MaxDepth {
		return fmt.Errorf("wire: nests deeper than %d: %w", MaxDepth, ErrValue)
	}
	return nil
}

// code writes a value of one byte.
func (e *encoder) code(c byte) error {
	e.out = append(e.out, c)
	return nil
}

func (e *encoder) text(s string) error {
	e.out = AppendString(e.out, s)
	return nil
}

func (e *encoder) bool(v bool) error {
	if v {
		return e.code(msgpcode.True)
	}
	return e.code(msgpcode.False)
}

func (e *encoder) integer(v int64) error {
	e.out = AppendInt(e.out, v)
	return nil
}

func (e *encoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("wire: a number that is not finite: %w", ErrValue)
	}
	e.out = binary.BigEndian.AppendUint64(append(e.out, msgpcode.Double), math.Float64bits(f))
	return nil
}

// dynamic writes the usual dynamic values without reflection.
func (e *encoder) dynamic(v any) error {
	switch v := v.(type) {
	case nil:
		return e.code(msgpcode.Nil)
	case string:
		return e.text(v)
	case bool:
		return e.bool(v)
	case int64:
		return e.integer(v)
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
		return e.code(msgpcode.Nil)
	}
	if err := e.enter(); err != nil {
		return err
	}
	e.out = AppendArray(e.out, len(v))
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
		return e.code(msgpcode.Nil)
	}
	if err := e.enter(); err != nil {
		return err
	}
	e.out = AppendMap(e.out, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		e.out = AppendString(e.out, k)
		if err := e.dynamic(v[k]); err != nil {
			return err
		}
	}
	e.depth--
	return nil
}

// value writes a value of any other type that the contract uses.
func (e *encoder) value(v reflect.Value) error {
	switch k := v.Kind(); k {
	case reflect.String:
		return e.text(v.String())
	case reflect.Bool:
		return e.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return e.integer(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return fmt.Errorf("wire: an integer beyond int64: %w", ErrValue)
		}
		return e.integer(int64(v.Uint()))
	case reflect.Float32, reflect.Float64:
		return e.float(v.Float())
	case reflect.Interface:
		return e.dynamic(v.Interface())
	case reflect.Struct:
		return e.structure(v)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		switch {
		case v.IsNil():
			return e.code(msgpcode.Nil)
		case k == reflect.Pointer:
			return e.pointer(v)
		case k == reflect.Map:
			return e.mapping(v)
		}
		return e.slice(v)
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

func (e *encoder) slice(v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.out = append(AppendBinary(e.out, v.Len()), v.Bytes()...)
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	e.out = AppendArray(e.out, v.Len())
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
	m := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		m[iter.Key().String()] = iter.Value().Interface()
	}
	return e.object(m)
}

func (e *encoder) structure(v reflect.Value) error {
	p := shapeOf(v.Type())
	if p.err != nil {
		return p.err
	}
	if err := e.enter(); err != nil {
		return err
	}
	var omit uint64
	n := len(p.fields)
	for i := range p.fields {
		f := &p.fields[i]
		if f.omitEmpty && empty(v.Field(f.index)) {
			omit |= 1 << i
			n--
		}
	}
	e.out = AppendMap(e.out, n)
	for i := range p.fields {
		f := &p.fields[i]
		if omit&(1<<i) != 0 {
			continue
		}
		e.out = AppendKey(e.out, f.name)
		if err := e.value(v.Field(f.index)); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	e.depth--
	return nil
}
