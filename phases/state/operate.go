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

// maxComparisons of nested elements in one remove.
const maxComparisons = 1 << 20

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
