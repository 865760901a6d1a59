package guest

import (
	"math"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// sameMessage reports whether two messages have the same encoding. a is a copy that
// copyMessage made. Texts that share their memory compare at once.
func sameMessage(a, b *abi.Message) bool {
	return a.ID == b.ID && a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.Visibility == b.Visibility &&
		a.Pinned == b.Pinned && slices.Equal(a.Content, b.Content) &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, sameCall) && sameMap(a.Metadata, b.Metadata)
}

func sameCall(a, b abi.ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Kind == b.Kind && a.IdempotencyKey == b.IdempotencyKey &&
		a.Resume == b.Resume && sameValue(a.Arguments, b.Arguments)
}

// sameValue compares dynamic values of the types that copyValue takes. A list or a map
// that is nil is not an empty one.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case []any:
		b, ok := b.([]any)
		return ok && (a == nil) == (b == nil) && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && (a == nil) == (b == nil) && sameMap(a, b)
	}
	return false
}

func sameMap(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if w, ok := b[key]; !ok || !sameValue(v, w) {
			return false
		}
	}
	return true
}

// copyMessage copies what can change of a message that was encoded, which bounds how
// deep it nests, but for its content, which the keeper of the copy copies. It returns false for a message that holds values of types that
// sameValue cannot compare.
func copyMessage(m *abi.Message) (abi.Message, bool) {
	out := *m
	out.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range out.ToolCalls {
		if out.ToolCalls[i].Resume != nil {
			return out, false // only a call that is executed has one
		}
		var ok bool
		if out.ToolCalls[i].Arguments, ok = copyValue(out.ToolCalls[i].Arguments); !ok {
			return out, false
		}
	}
	metadata, ok := copyValue(m.Metadata)
	if !ok {
		return out, false
	}
	out.Metadata, ok = metadata.(map[string]any)
	return out, ok
}

func copyValue(v any) (any, bool) {
	switch v := v.(type) {
	case nil, bool, string, int64, float64:
		return v, true
	case []any:
		if v == nil {
			return []any(nil), true
		}
		out := make([]any, len(v))
		for i := range v {
			var ok bool
			if out[i], ok = copyValue(v[i]); !ok {
				return nil, false
			}
		}
		return out, true
	case map[string]any:
		if v == nil {
			return map[string]any(nil), true
		}
		out := make(map[string]any, len(v))
		for key := range v {
			var ok bool
			if out[key], ok = copyValue(v[key]); !ok {
				return nil, false
			}
		}
		return out, true
	}
	return nil, false
}
