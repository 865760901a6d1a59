package agui

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Fields are those of an event on the wire of package serve, by name.
type Fields map[string]json.RawMessage

// input has the fields that the translation needs, of all types of events.
type input struct {
	At             time.Time       `json:"at"`
	Step           int             `json:"step"`
	MessageID      string          `json:"message_id"`
	Delta          json.RawMessage `json:"delta"`
	Reason         string          `json:"reason"`
	Call           abi.ToolCall    `json:"call"`
	Result         abi.ToolResult  `json:"result"`
	Snapshot       json.RawMessage `json:"snapshot"`
	Messages       json.RawMessage `json:"messages"`
	ActivityType   string          `json:"activity_type"`
	Content        json.RawMessage `json:"content"`
	Replace        bool            `json:"replace"`
	Patch          json.RawMessage `json:"patch"`
	EncryptedValue string          `json:"encrypted_value"`
	Name           string          `json:"name"`
	By             string          `json:"by"`
	Payload        json.RawMessage `json:"payload"`
	Outcome        outcome         `json:"outcome"`
	Status         string          `json:"status"`
	Termination    string          `json:"termination"`
	Output         string          `json:"output"`
	Error          string          `json:"error"`
}

// outcome is what a run came to.
type outcome struct {
	Tickets []ticket  `json:"tickets"`
	Usage   abi.Usage `json:"usage"`
}

// ticket is a call that waits for a decision.
type ticket struct {
	abi.SuspendTicket

	Call   abi.ToolCall `json:"call"`
	Reason string       `json:"reason"`
	By     string       `json:"by"`
}

// read decodes the fields one by one: one that does not fit is left empty, and the others are there.
func read(f Fields) (in input) {
	data, err := json.Marshal(f)
	if err == nil && json.Unmarshal(data, &in) == nil {
		return in
	}
	for name, value := range f {
		one, err := json.Marshal(Fields{name: value})
		if err == nil {
			_ = json.Unmarshal(one, &in) // see above
		}
	}
	return in
}

// text is the delta of an event that has a text.
func (in *input) text() (s string) {
	_ = json.Unmarshal(in.Delta, &s) // what is no text is empty
	return s
}

// resultText is what the model reads of a result.
func resultText(r *abi.ToolResult) string {
	m := abi.Message{Content: r.Content}
	if text := m.Text(); text != "" {
		return text
	}
	if r.Message != "" || r.Data == nil {
		return r.Message
	}
	return jsonText(r.Data)
}

// jsonText is a value as text: a text as it is, and others as JSON.
func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil || v == nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
