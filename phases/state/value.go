package state

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

const (
	// maxDepth of a dynamic value; a value that contains itself ends here.
	maxDepth = 32
	// ValueBytes is what a value counts beside its text, so that a list of a
	// million nulls is not free.
	ValueBytes = 8
	// maxComparisons of nested elements in one remove.
	maxComparisons = 1 << 20
)

// ErrTooLarge is a value that is larger than its limit.
var ErrTooLarge = errors.New("too large")

var errTooDeep = fmt.Errorf("nested deeper than %d", maxDepth)

// Clone copies a dynamic value of at most limit bytes, so that whoever gave it
// cannot change it later, and says how large it is. Numbers become int64 or float64.
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

// operate returns what an operation makes of a value. It changes neither the old
// value nor the operand; the result may share parts of both. Nil counts as
// nothing there.
func operate(op abi.Op, old, operand any) (any, error) {
	switch op {
	case abi.OpSet:
		return operand, nil
	case abi.OpMerge:
		return opMerge(old, operand)
	case abi.OpAppend:
		return opAppend(old, operand)
	case abi.OpAdd:
		return opAdd(old, operand)
	case abi.OpRemove:
		return opRemove(old, operand)
	default:
		return nil, fmt.Errorf("operation %.40q is not one of set, merge, append, add, remove", op)
	}
}

func opMerge(old, operand any) (any, error) {
	fields, ok := operand.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("merge takes a map, not %s", kind(operand))
	}
	if old == nil {
		return fields, nil
	}
	current, ok := old.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("merge needs the value to be a map, but it is %s", kind(old))
	}
	out := make(map[string]any, len(current)+len(fields))
	maps.Copy(out, current)
	maps.Copy(out, fields)
	return out, nil
}

func opAppend(old, operand any) (any, error) {
	elements, ok := operand.([]any)
	if !ok {
		return nil, fmt.Errorf("append takes a list, not %s", kind(operand))
	}
	if old == nil {
		return elements, nil
	}
	current, ok := old.([]any)
	if !ok {
		return nil, fmt.Errorf("append needs the value to be a list, but it is %s", kind(old))
	}
	return slices.Concat(current, elements), nil
}

func opAdd(old, operand any) (any, error) {
	if old == nil {
		old = int64(0)
	}
	a, aok := old.(int64)
	b, bok := operand.(int64)
	if aok && bok {
		sum := a + b
		if (sum > a) != (b > 0) {
			return nil, errors.New("add overflows")
		}
		return sum, nil
	}
	x, xok := float(old)
	y, yok := float(operand)
	switch {
	case !yok:
		return nil, fmt.Errorf("add takes a number, not %s", kind(operand))
	case !xok:
		return nil, fmt.Errorf("add needs the value to be a number, but it is %s", kind(old))
	case math.IsInf(x+y, 0):
		return nil, errors.New("add overflows")
	}
	return x + y, nil
}

func opRemove(old, operand any) (any, error) {
	unwanted, ok := operand.([]any)
	if !ok {
		return nil, fmt.Errorf("remove takes a list, not %s", kind(operand))
	}
	switch old := old.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		out := maps.Clone(old)
		for _, v := range unwanted {
			name, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("remove takes names of fields, not %s", kind(v))
			}
			delete(out, name)
		}
		return out, nil
	case []any:
		return removeElements(old, unwanted)
	default:
		return nil, fmt.Errorf("remove needs the value to be a map or a list, but it is %s", kind(old))
	}
}

// removeElements looks simple elements up and compares the others one by one,
// which takes the product of both lengths and is bounded.
func removeElements(list, unwanted []any) (any, error) {
	simple := make(map[any]bool, len(unwanted))
	var nested []any
	for _, u := range unwanted {
		if isNested(u) {
			nested = append(nested, u)
		} else {
			simple[u] = true
		}
	}
	if len(nested) > 0 && len(list) > maxComparisons/len(nested) {
		return nil, errors.New("remove names too many lists, maps or bytes for so long a list")
	}
	return slices.DeleteFunc(slices.Clone(list), func(e any) bool {
		if !isNested(e) {
			return simple[e]
		}
		return slices.ContainsFunc(nested, func(u any) bool { return reflect.DeepEqual(e, u) })
	}), nil
}

func isNested(v any) bool {
	switch v.(type) {
	case []byte, []any, map[string]any:
		return true
	default:
		return false
	}
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	case string:
		return "text"
	case []byte:
		return "bytes"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return fmt.Sprintf("a %T", v)
	}
}
