package mortise

import (
	"math"
	"strings"
)

// Lookup finds a value in a dynamic value, such as [Event.Config] or
// [ToolCall.Arguments]. The path is keys of nested maps, joined by dots; the
// empty path is v itself. It reports whether every key was there; a nil counts as
// not there.
func Lookup(v any, path string) (any, bool) {
	for path != "" {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		var key string
		key, path, _ = strings.Cut(path, ".")
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, v != nil
}

// StringOr returns the string at path, or def if there is none.
func StringOr(v any, path, def string) string {
	if found, ok := Lookup(v, path); ok {
		if s, ok := found.(string); ok {
			return s
		}
	}
	return def
}

// IntOr returns the integer at path, or def if there is none. A float without a
// fraction counts as an integer.
func IntOr(v any, path string, def int64) int64 {
	found, _ := Lookup(v, path)
	switch n := found.(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		if n == math.Trunc(n) && n >= math.MinInt64 && n < math.MaxInt64 {
			return int64(n)
		}
	}
	return def
}

// FloatOr returns the number at path, or def if there is none.
func FloatOr(v any, path string, def float64) float64 {
	found, _ := Lookup(v, path)
	switch n := found.(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	case int:
		return float64(n)
	}
	return def
}

// BoolOr returns the bool at path, or def if there is none.
func BoolOr(v any, path string, def bool) bool {
	if found, ok := Lookup(v, path); ok {
		if b, ok := found.(bool); ok {
			return b
		}
	}
	return def
}

// StringsOr returns the list of strings at path, or def if there is none or if
// an element is not a string. An empty list is a list.
func StringsOr(v any, path string, def []string) []string {
	found, _ := Lookup(v, path)
	switch list := found.(type) {
	case []string:
		return list
	case []any:
		out := make([]string, len(list))
		for i := range list {
			s, ok := list[i].(string)
			if !ok {
				return def
			}
			out[i] = s
		}
		return out
	}
	return def
}

// MapOr returns the map at path, or def if there is none.
func MapOr(v any, path string, def map[string]any) map[string]any {
	if found, ok := Lookup(v, path); ok {
		if m, ok := found.(map[string]any); ok {
			return m
		}
	}
	return def
}

// ListOr returns the list at path, or def if there is none.
func ListOr(v any, path string, def []any) []any {
	if found, ok := Lookup(v, path); ok {
		if list, ok := found.([]any); ok {
			return list
		}
	}
	return def
}
