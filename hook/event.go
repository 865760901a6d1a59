package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/dynamic"
)

// MaxEvent is how large an event may be, in bytes.
const MaxEvent = 32 << 20

// maxDepth is how deep an event may nest: what plugins can be sent.
const maxDepth = 60

// Event is an agent's event, decoded.
type Event struct {
	Dialect *Dialect
	Spec    *EventSpec
	// Session is the agent's session, Lane the sub-agent in it, empty for the main one.
	Session, Lane    string
	Cwd, Transcript  string
	PromptID, CallID string
	Tool             string
	Call             Call
	Response         any
	Error, Prompt    string
	Last             string
	Trigger, Source  string
	Summary          string

	raw   map[string]any
	stdin []byte
}

// Decode reads what an agent wrote to a hook. Unknown fields change nothing.
func (d *Dialect) Decode(name string, stdin []byte) (*Event, error) {
	spec, err := d.Event(name)
	if err != nil {
		return nil, err
	}
	if len(stdin) > MaxEvent {
		return nil, fmt.Errorf("hook: %s %s: the event has %d bytes, more than %d", d.Name, name, len(stdin), MaxEvent)
	}
	value, err := decodeJSON(stdin)
	if err != nil {
		return nil, fmt.Errorf("hook: %s %s: %w", d.Name, name, err)
	}
	raw, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("hook: %s %s: the event is no JSON object", d.Name, name)
	}
	if got, ok := raw[d.EventField].(string); ok && d.EventField != "" && got != name {
		return nil, fmt.Errorf("hook: %s: the hook is registered for %s and got %.40q", d.Name, name, got)
	}
	e := &Event{Dialect: d, Spec: spec, raw: raw, stdin: stdin}
	e.Session, e.Lane, e.Cwd, e.Transcript = e.text("session"), e.text("lane"), e.text("cwd"), e.text("transcript")
	e.PromptID, e.CallID, e.Error, e.Prompt = e.text("prompt_id"), e.text("call"), e.text("error"), e.text("prompt")
	e.Last, e.Trigger, e.Source, e.Summary = e.text("last"), e.text("trigger"), e.text("source"), e.text("summary")
	e.Tool, e.Response = e.text("tool"), e.value("response")
	switch spec.Kind {
	case EventPre, EventPost, EventFailed:
		if e.Tool == "" {
			return nil, fmt.Errorf("hook: %s %s: the event names no tool in %q", d.Name, name, d.Fields["tool"])
		}
		e.Call = d.Translate(e.Tool, e.input(), e.Cwd)
		context, _ := raw[d.MCP.Context].(map[string]any)
		server, _ := context["server_name"].(string)
		if tool, _ := context["tool_name"].(string); server != "" && tool != "" {
			e.Call = e.Call.of(server, tool)
		}
	default:
	}
	return e, nil
}

func (e *Event) value(field string) any {
	if name := e.Dialect.Fields[field]; name != "" {
		return e.raw[name]
	}
	return nil
}

func (e *Event) text(field string) string {
	s, _ := e.value(field).(string)
	return s
}

// input is the input of the tool, which some agents send as JSON in a string.
func (e *Event) input() any { return inner(e.value("input"), decodeJSON) }

func inner(v any, decode func([]byte) (any, error)) any {
	s, ok := v.(string)
	if !ok || !strings.HasPrefix(strings.TrimSpace(s), "{") {
		return v
	}
	object, err := decode([]byte(s))
	if err != nil {
		return v
	}
	return object
}

// exact is the input or the response with its numbers as they were written: plugins get 64 bits of them.
func (e *Event) exact(field string) any {
	var event map[string]any
	if dynamic.Decode(e.stdin, &event) != nil {
		return e.value(field)
	}
	v := event[e.Dialect.Fields[field]]
	if field == "input" {
		v = inner(v, func(data []byte) (v any, err error) {
			err = dynamic.Decode(data, &v)
			return v, err
		})
	}
	return v
}

// decodeJSON reads one JSON value as plugins may get it: integers as int64, other numbers as float64.
func decodeJSON(data []byte) (any, error) {
	v, err := dynamic.Value(data)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the input is empty")
	case err != nil:
		return nil, fmt.Errorf("the input is no JSON: %w", err)
	case nests(v, maxDepth):
		return nil, fmt.Errorf("the input nests deeper than %d", maxDepth)
	}
	return v, nil
}

// nests reports whether a value nests deeper than that.
func nests(v any, depth int) bool {
	switch t := v.(type) {
	case []any:
		return depth == 0 || slices.ContainsFunc(t, func(e any) bool { return nests(e, depth-1) })
	case map[string]any:
		for _, e := range t {
			if depth == 0 || nests(e, depth-1) {
				return true
			}
		}
	}
	return false
}

// encodeJSON writes a value on one line, without escapes for HTML.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("hook: encode: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// DecodeJSON reads one JSON value as plugins may get it; no input is an empty object.
func DecodeJSON(data []byte) (any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return map[string]any{}, nil
	}
	return decodeJSON(data)
}
