package background

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/dynamic"
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
	out, err := dynamic.Of(v)
	if err != nil {
		return fmt.Sprintf("%T", v) // printing it could recurse without end
	}
	return out
}
