package state

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
)

const (
	// maxDepth of a dynamic value; a value that contains itself ends here.
	maxDepth = 32
	// ValueBytes is what a value counts besides its text, so that a list of a
	// million nulls is not free.
	ValueBytes = 8
)

// ErrTooLarge is a value that is larger than its limit.
var ErrTooLarge = errors.New("too large")

var errTooDeep = fmt.Errorf("nested deeper than %d", maxDepth)

// Clone copies a dynamic value of at most limit bytes, so that its giver
// cannot change it later, and returns its size. Numbers become int64 or float64.
// It fails with [ErrTooLarge], or for a value that is not one of the contract's.
func Clone(v any, limit int) (value any, size int, err error) {
	m := meter{left: limit}
	value, err = m.clone(v)
	return value, limit - m.left, err
}

// meter copies what plugins gave, so that they cannot change it later, and
// counts its size against a budget.
type meter struct {
	left int
}

func (m *meter) spend(n int) error {
	m.left -= n
	if m.left < 0 {
		return ErrTooLarge
	}
	return nil
}

// clone copies a dynamic value and makes its numbers int64 or float64.
func (m *meter) clone(v any) (any, error) { return m.value(v, 0) }

func (m *meter) value(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	if err := m.spend(ValueBytes); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("the number %v cannot be stored", v)
		}
		return v, nil
	case string:
		return v, m.spend(len(v))
	case []byte:
		return slices.Clone(v), m.spend(len(v))
	case []any:
		return m.list(v, depth)
	case map[string]any:
		return m.fields(v, depth)
	default:
		return number(v)
	}
}

func (m *meter) list(v []any, depth int) (any, error) {
	if len(v) > m.left/ValueBytes {
		return nil, ErrTooLarge
	}
	out := make([]any, len(v))
	for i := range v {
		e, err := m.value(v[i], depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

func (m *meter) fields(v map[string]any, depth int) (any, error) {
	if len(v) > m.left/ValueBytes {
		return nil, ErrTooLarge
	}
	out := make(map[string]any, len(v))
	// In order, so that of several faults the same one is always reported.
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if err := m.spend(len(name)); err != nil {
			return nil, err
		}
		e, err := m.value(v[name], depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = e
	}
	return out, nil
}

// measure counts a value as clone would, without the copy. The value is one that
// operate made of clones.
func (m *meter) measure(v any, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	if err := m.spend(ValueBytes); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		return m.spend(len(v))
	case []byte:
		return m.spend(len(v))
	case []any:
		for _, e := range v {
			if err := m.measure(e, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range v {
			if err := m.spend(len(name)); err != nil {
				return err
			}
			if err := m.measure(e, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// number takes the number types that native plugins write without thinking.
func number(v any) (any, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt() && r.Type().PkgPath() == "":
		return r.Int(), nil
	case r.CanUint() && r.Type().PkgPath() == "" && r.Uint() <= math.MaxInt64:
		return int64(r.Uint()), nil
	case r.CanFloat() && r.Type().PkgPath() == "" && !math.IsNaN(r.Float()) && !math.IsInf(r.Float(), 0):
		return r.Float(), nil
	}
	return nil, fmt.Errorf("a value of type %T cannot be stored", v)
}
