package wire

import (
	"reflect"
	"sync"
)

// shape is how values of a type stand in memory, as far as the decoder fills them in
// without asking reflection each time.
type shape struct {
	typ  reflect.Type
	kind reflect.Kind
	// elem is that of a slice or a pointer.
	elem *shape
	// fields are those of a struct, in the order of plan, which names them.
	fields []shapeField
	plan   *plan
	// err is why a struct cannot be read.
	err error
}

type shapeField struct {
	offset uintptr
	shape  *shape
}

// shapes caches by type. Types are few and never go away.
var shapes sync.Map //nolint:gochecknoglobals // a cache of what the types say; it holds no state

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
		if s.plan, s.err = planOf(t); s.err != nil {
			return s
		}
		for i := range s.plan.fields {
			f := t.Field(s.plan.fields[i].index)
			s.fields = append(s.fields, shapeField{offset: f.Offset, shape: newShape(f.Type, known)})
		}
	default:
	}
	return s
}
