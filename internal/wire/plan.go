package wire

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// plan holds how the fields of a struct type are written.
type plan struct {
	fields []planField
}

// find returns the index of the field with that name, or -1. Fields come in their
// order mostly, so it looks at next first.
func (p *plan) find(name []byte, next int) int {
	for n := range p.fields {
		i := next + n
		if i >= len(p.fields) {
			i -= len(p.fields)
		}
		if p.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

type planField struct {
	name      string
	index     int
	omitEmpty bool
}

// plans caches by type. Types are few and never go away.
var plans sync.Map //nolint:gochecknoglobals // a cache of what the types say; it holds no state

// maxFields is how many fields the decoder can tell apart in its set of seen keys.
const maxFields = 64

// planOf returns the plan of a struct type. Every field must be exported and
// have a json tag, so that both formats write the same.
func planOf(t reflect.Type) (*plan, error) {
	if cached, ok := plans.Load(t); ok {
		if p, ok := cached.(*plan); ok {
			return p, nil
		}
	}
	if t.NumField() > maxFields {
		return nil, fmt.Errorf("wire: type %s: more than %d fields: %w", t, maxFields, ErrValue)
	}
	p := &plan{fields: make([]planField, 0, t.NumField())}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			return nil, fmt.Errorf("wire: type %s: field %s has no json name: %w", t, f.Name, ErrValue)
		}
		p.fields = append(p.fields, planField{name: name, index: i, omitEmpty: options == "omitempty"})
	}
	plans.Store(t, p)
	return p, nil
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
