package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Indented is v as indented JSON, for the arguments of a call.
func Indented(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("    ", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v))
	}
	return strings.TrimSpace(b.String())
}

// WriteJSON writes v as indented JSON.
func WriteJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// AsJSON is v as JSON in one line.
func AsJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%v", v)
	}
	return strings.TrimSpace(b.String())
}

// List makes an empty list of one that is nil, which JSON would have as null.
func List[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
