package wire

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// shape is what the codec knows of a type, so that it does not ask reflection each time.
type shape struct {
	typ  reflect.Type
	kind reflect.Kind
	// elem is that of a slice or a pointer.
	elem *shape
	// fields are those of a struct, in their order.
	fields []field
	// err is why values of the type cannot be read or written.
	err error
}

type field struct {
	name      string
	index     int
	omitEmpty bool
	offset    uintptr
	shape     *shape
}

// find returns the index of the field with that name, or -1. Fields come in their
// order mostly, so it looks at next first.
func (s *shape) find(name []byte, next int) int {
	for n := range s.fields {
		i := next + n
		if i >= len(s.fields) {
			i -= len(s.fields)
		}
		if s.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// shapes caches by type. Types are few and never go away.
var shapes sync.Map //nolint:gochecknoglobals // a cache of what the types say; it holds no state

// maxFields is how many fields the codec can tell apart in its set of those seen.
const maxFields = 64

// shapeOf returns the shape of a type.
func shapeOf(t reflect.Type) *shape {
	if cached, ok := shapes.Load(t); ok {
		if s, ok := cached.(*shape); ok {
			return s
		}
	}
	s := newShape(t, map[reflect.Type]*shape{})
	shapes.Store(t, s)
	return s
}

// newShape makes a shape with all that it consists of; known holds those that are made
// already, or being made: a type may be part of itself.
func newShape(t reflect.Type, known map[reflect.Type]*shape) *shape {
	if s, ok := known[t]; ok {
		return s
	}
	s := &shape{typ: t, kind: t.Kind()}
	known[t] = s
	switch s.kind {
	case reflect.Slice, reflect.Pointer:
		s.elem = newShape(t.Elem(), known)
	case reflect.Struct:
		s.err = s.addFields(known)
	default:
	}
	return s
}

// addFields lists the fields of a struct. Every field must be exported and have a json
// tag, so that both formats write the same.
func (s *shape) addFields(known map[reflect.Type]*shape) error {
	if s.typ.NumField() > maxFields {
		return fmt.Errorf("wire: type %s: more than %d fields: %w", s.typ, maxFields, ErrValue)
	}
	for i := range s.typ.NumField() {
		f := s.typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			return fmt.Errorf("wire: type %s: field %s has no json name: %w", s.typ, f.Name, ErrValue)
		}
		s.fields = append(s.fields, field{name, i, options == "omitempty", f.Offset, newShape(f.Type, known)})
	}
	return nil
}

// empty reports whether encoding/json would omit the value of an omitempty field.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}
