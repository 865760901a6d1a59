package mcpproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// Requests whose answers a model reads: plugins see them as calls.
const (
	methodTool     = "tools/call"
	methodResource = "resources/read"
	methodPrompt   = "prompts/get"
	// methodSampling is a request of the server, whose messages a model reads: plugins see it as a result.
	methodSampling = "sampling/createMessage"
)

// seen are the fields of a request that plugins see, the first one what it names.
var seen = map[string][]string{methodTool: {"name", "arguments"}, methodResource: {"uri"}, methodPrompt: {"name", "arguments"}} //nolint:gochecknoglobals // a table

// call is a request as plugins see it: a tool under its own name, and what is read under that of the method.
type call struct {
	method, named, tool string
	input               any
}

// name is how plugins know a tool of the server.
func (p *Proxy) name(tool string) string { return "mcp__" + p.cfg.Server + "__" + tool }

// callOf reads a request that plugins see.
func (p *Proxy) callOf(m *message) *call {
	c := &call{method: m.method, named: m.text("params", seen[m.method][0]), tool: m.method}
	if m.method == methodTool {
		c.tool, c.input = p.name(c.named), map[string]any{}
		if at, ok := m.inner("params", "arguments"); ok {
			c.input = decoded(at.of(m.data))
		}
		return c
	}
	input := map[string]any{"server": p.cfg.Server}
	for _, field := range seen[m.method] {
		if at, ok := m.inner("params", field); ok {
			input[field] = decoded(at.of(m.data))
		}
	}
	c.input = input
	return c
}

// rewrite is the message of a call with what plugins made of it, which the call has from then on.
func (c *call) rewrite(m *message, input any) (line []byte, err error) {
	before := c.input
	c.input = input
	if c.method == methodTool {
		return m.set("arguments", input), nil
	}
	was, _ := before.(map[string]any)
	now, _ := input.(map[string]any)
	for _, field := range seen[c.method] {
		v, ok := now[field]
		if !ok || reflect.DeepEqual(v, was[field]) {
			continue
		}
		if m, err = read(m.set(field, v)); err != nil {
			return nil, err
		}
	}
	return m.data, nil
}

// set returns the message with a field of its parameters changed or added.
func (m *message) set(field string, v any) []byte {
	if at, ok := m.inner("params", field); ok {
		return m.with(at, v)
	}
	end := m.fields["params"].end - 1
	return slices.Concat(m.data[:end], []byte(","), wire.Quote(field), []byte(":"), wire.Marshal(v), m.data[end:])
}

// denial answers a call with the reason why it has no other answer: a result of a tool, and else an error.
func (c *call) denial(id, reason string) []byte {
	if c.method != methodTool {
		return failure(id, reason)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}],"isError":true}}`+"\n", id, wire.Quote(reason))
}

// failure answers a request with an error.
func failure(id, reason string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`+"\n", id, wire.Quote(reason))
}

// decoded is a value with its numbers as they are written, or an empty object for what is no JSON.
func decoded(data []byte) any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v := any(map[string]any{})
	_ = dec.Decode(&v)
	return v
}
