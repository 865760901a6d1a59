package future

import (
	"maps"
	"slices"
	"strings"
)

// write writes the strings of a value, each on a line of its own.
func write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString(v + "\n")
	case []any:
		for _, e := range v {
			write(b, e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			write(b, v[name])
		}
	}
}

// argument returns the first of the named arguments that is a string.
func argument(v any, names ...string) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range names {
		if s, ok := m[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// flow is a text with each run of white space as one blank.
func flow(s string) string { return strings.Join(strings.Fields(s), " ") }

// headOf are the first n characters of a text.
func headOf(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
