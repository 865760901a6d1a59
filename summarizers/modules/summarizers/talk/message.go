package talk

import (
	"slices"
	"strconv"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// BytesPerToken turns a budget into bytes when the config does not say otherwise.
const BytesPerToken = 3.6

// maxLimit bounds a summary whatever the budget, in bytes.
const maxLimit = 1 << 20

// Limit is how many bytes the summary may have.
func Limit(req *mortise.SummarizeRequest) int {
	per := mortise.FloatOr(req.Config, "bytes_per_token", BytesPerToken)
	if !(per >= 1 && per <= 8) {
		per = BytesPerToken
	}
	return int(min(float64(max(0, req.BudgetTokens))*per, maxLimit))
}

// Hidden reports whether a message is no part of what was said: one of the system, or one
// that the runtime wrote.
func Hidden(m *mortise.Message) bool {
	return m.Role == mortise.RoleSystem || m.Visibility == mortise.VisibilityInternal
}

// Output reports whether a message is a tool's output. Some agents send that as the user.
func Output(m *mortise.Message) bool {
	if m.Role == mortise.RoleTool {
		return true
	}
	if m.Role != mortise.RoleUser {
		return false
	}
	s := strings.ToLower(strings.TrimSpace(Cut(m.Text(), 64)))
	for _, start := range []string{"<returncode>", "<output>", "<observation>", "<stdout>", "<tool_result", "observation:"} {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return false
}

// Span returns the ids of the first and the last message.
func Span(list []mortise.Message) (from, to string) {
	if len(list) == 0 {
		return "", ""
	}
	return list[0].ID, list[len(list)-1].ID
}

// Bounds of arguments.
const (
	maxArguments = 32
	maxDepth     = 4
	maxArgument  = 400
)

// Call writes a call as "name key=value key=value".
func Call(c *mortise.ToolCall) string {
	out := []byte(Line(c.Name, 80))
	n := 0
	return string(argument(out, "", c.Arguments, 0, &n))
}

func argument(out []byte, key string, v any, depth int, n *int) []byte {
	if v == nil || depth > maxDepth {
		return out
	}
	if *n >= maxArguments {
		return out
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = argument(out, k, v[k], depth+1, n)
		}
		return out
	case []any:
		for _, e := range v {
			out = argument(out, key, e, depth+1, n)
		}
		return out
	}
	*n++
	if out = append(out, ' '); key != "" {
		out = append(append(out, Line(key, 80)...), '=')
	}
	switch v := v.(type) {
	case string:
		out = append(out, Line(Shorten(v, maxArgument), maxArgument)...)
	case int64:
		out = strconv.AppendInt(out, v, 10)
	case float64:
		out = strconv.AppendFloat(out, v, 'g', -1, 64)
	case bool:
		out = strconv.AppendBool(out, v)
	}
	return out
}
