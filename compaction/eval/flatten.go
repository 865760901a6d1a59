package eval

import (
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Conversation is what a set measures on.
type Conversation struct {
	// ID is what probes call it.
	ID       string
	Messages []abi.Message
}

// Flatten writes messages out as a reader would see them: the text of each, and
// its calls by name and arguments, on lines of their own.
func Flatten(messages []abi.Message) string {
	var b strings.Builder
	for i := range messages {
		b.WriteString(flat(&messages[i]))
		b.WriteByte('\n')
	}
	return b.String()
}

func flat(m *abi.Message) string {
	if len(m.ToolCalls) == 0 {
		return m.Text()
	}
	var b strings.Builder
	b.WriteString(m.Text())
	for _, c := range m.ToolCalls {
		b.WriteString("\n" + c.Name + " " + arguments(c.Arguments))
	}
	return b.String()
}

// arguments writes the arguments of a call as JSON; text that is no JSON stays.
func arguments(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
