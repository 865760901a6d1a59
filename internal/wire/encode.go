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

// nested writes what is one level deeper.
func (e *encoder) nested(write func() error) error {
	e.depth++
	if e.depth > MaxDepth {
		return fmt.Errorf("wire: nests deeper than %d: %w", MaxDepth, ErrValue)
	}
	defer func() { e.depth-- }()
	return write()
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
		if v != nil {
			return e.nested(func() error { return e.list(v) })
		}
		return e.code(msgpcode.Nil)
	case map[string]any:
		if v != nil {
			return e.nested(func() error { return e.object(v) })
		}
		return e.code(msgpcode.Nil)
	}
	return e.value(reflect.ValueOf(v))
}

func (e *encoder) list(v []any) error {
	e.out = AppendArray(e.out, len(v))
	for i := range v {
		if err := e.dynamic(v[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) object(v map[string]any) error {
	e.out = AppendMap(e.out, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		e.out = AppendString(e.out, k)
		if err := e.dynamic(v[k]); err != nil {
			return err
		}
	}
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
		return e.nested(func() error { return e.structure(v) })
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if v.IsNil() {
			return e.code(msgpcode.Nil)
		}
		return e.indirect(v)
	default:
		return fmt.Errorf("wire: type %s: %w", v.Type(), ErrValue)
	}
}

// indirect writes a pointer, a slice or a map that is not nil.
func (e *encoder) indirect(v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		// A cycle of pointers is possible, so they count towards the depth.
		if k := v.Elem().Kind(); k == reflect.Pointer || k == reflect.Interface {
			return e.nested(func() error { return e.value(v.Elem()) })
		}
		return e.value(v.Elem())
	}
	if v.Kind() == reflect.Map {
		if v.Type().Key().Kind() != reflect.String {
			return fmt.Errorf("wire: type %s: a key must be a string: %w", v.Type(), ErrValue)
		}
		m := make(map[string]any, v.Len())
		for iter := v.MapRange(); iter.Next(); {
			m[iter.Key().String()] = iter.Value().Interface()
		}
		return e.nested(func() error { return e.object(m) })
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.out = append(AppendBinary(e.out, v.Len()), v.Bytes()...)
		return nil
	}
	return e.nested(func() error {
		e.out = AppendArray(e.out, v.Len())
		for i := range v.Len() {
			if err := e.value(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *encoder) structure(v reflect.Value) error {
	p, err := planOf(v.Type())
	if err != nil {
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
	e.out = AppendMap(e.out, n)
	for i, f := range p.fields {
		if omit&(1<<i) != 0 {
			continue
		}
		e.out = AppendKey(e.out, f.name)
		if err := e.value(v.Field(f.index)); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}
