package background

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxDepth bounds the nesting of a value. A map that holds itself would
// otherwise overflow the stack, which no recover catches.
const maxDepth = 100

// plain turns v into a value that the ABI can carry. Values that already are
// come back as they are; anything else goes through JSON. What JSON refuses
// becomes the name of its type, and what is nested deeper than maxDepth is cut.
func plain(v any) any { return plainAt(v, 0) }

func plainAt(v any, depth int) any {
	if depth > maxDepth {
		return nil
	}
	switch x := v.(type) {
	case nil, bool, int64, float64, string, []byte:
		return v
	case int:
		return int64(x)
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = plainAt(e, depth+1)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = plainAt(e, depth+1)
		}
		return out
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v) // printing it could recurse without end
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return string(data)
	}
	return numbers(out)
}

// numbers replaces json.Number by int64 or float64, in place.
func numbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i
		}
		f, err := x.Float64()
		if err != nil {
			return x.String()
		}
		return f
	case map[string]any:
		for k, e := range x {
			x[k] = numbers(e)
		}
	case []any:
		for i, e := range x {
			x[i] = numbers(e)
		}
	}
	return v
}
