package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// gate asks the plugins about a call, and passes it on, with other arguments perhaps, or answers it.
func (p *Proxy) gate(ctx context.Context, m *message, h *held) {
	line, c, reason := p.judge(ctx, m)
	p.mu.Lock()
	delete(p.held, m.key)
	dropped := h.cancelled || ctx.Err() != nil
	p.mu.Unlock()
	var err error
	switch {
	case dropped: // who cancels a call wants no answer
	case reason != "":
		err = p.toClient.line(append(denial(m.id, reason), '\n'))
	default:
		p.asks(m, asked{call: c})
		err = p.toServer.line(line)
	}
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "a call was lost", "error", err)
	}
}

// judge returns the message to pass on, or why there is none.
func (p *Proxy) judge(ctx context.Context, m *message) (line []byte, c *call, reason string) {
	c = &call{tool: m.text("params", "name")}
	var input any = map[string]any{}
	at, there := m.inner("params", "arguments")
	if there {
		dec := json.NewDecoder(bytes.NewReader(at.of(m.data)))
		dec.UseNumber()
		_ = dec.Decode(&input)
	}
	c.input = input
	if c.tool == "" {
		return nil, nil, "mortise: the call names no tool"
	}
	if wire.Repeats(m.fields["params"].of(m.data)) {
		return nil, nil, "mortise: the call has a field twice"
	}
	if why := p.cfg.Pins.blocked(c.tool); why != "" {
		return nil, nil, why
	}
	answer, err := p.ask(ctx, "call", map[string]any{"tool": p.name(c.tool), "call": m.id, "input": input})
	switch {
	case err != nil && p.closed("call"):
		return nil, nil, "mortise: the plugins could not be asked"
	case err != nil || answer == nil:
		return m.data, c, ""
	}
	if why, ok := answer["deny"].(string); ok {
		return nil, nil, why
	}
	rewritten, ok := answer["input"]
	if !ok {
		return m.data, c, ""
	}
	c.input = rewritten
	if !there {
		return p.added(m, rewritten), c, ""
	}
	if line, err = m.with(at, rewritten); err != nil {
		return nil, nil, "mortise: the call could not be rewritten"
	}
	return line, c, ""
}

// added is a call that had no arguments with some.
func (p *Proxy) added(m *message, input any) []byte {
	at := m.fields["params"]
	text, err := compact(input)
	if err != nil {
		return m.data
	}
	out := append([]byte{}, m.data[:at.end-1]...)
	return append(append(append(out, `,"arguments":`...), text...), m.data[at.end-1:]...)
}

func (p *Proxy) name(tool string) string { return "mcp__" + p.cfg.Server + "__" + tool }

// response passes a message of the server on, or has plugins look at it first. Where they look at results, or tools have pins, an answer to
// nothing that the server was asked is dropped: one that comes twice, before the server has the call, or under an id that is only like its own.
func (p *Proxy) response(ctx context.Context, line []byte) error {
	if p.wants("result") && odd(line) {
		p.cfg.Logger.WarnContext(ctx, "a line of the server that is no message was dropped")
		return nil
	}
	if all, ok := batchOf(line); ok {
		return p.batch(ctx, line, all, p.toClient, p.response, (*message).response)
	}
	m, err := read(line)
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "a message of the server was dropped", "error", err)
		return nil
	}
	a, ok := p.answers(m)
	switch {
	case !ok && (p.wants("result") || p.cfg.Pins != nil):
		p.cfg.Logger.WarnContext(ctx, "an answer of the server to no request was dropped", "id", m.id)
		return nil
	case a.list:
		return p.toClient.line(p.listed(ctx, m))
	case a.call == nil || !p.wants("result"):
		return p.toClient.line(line)
	}
	p.results.add(func() {
		if err := p.toClient.line(p.result(ctx, m, a.call)); err != nil {
			p.cfg.Logger.WarnContext(ctx, "a result was lost", "error", err)
		}
	})
	return nil
}

// answers returns what a message answers, and forgets it. It reports false for an answer to no request. An error without an id is none.
func (p *Proxy) answers(m *message) (a asked, ok bool) {
	if !m.response() || m.id == "null" {
		return asked{}, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok = p.asked[m.key]
	delete(p.asked, m.key)
	return a, ok
}

// result lets plugins replace the result of a call: content and structured content alike.
func (p *Proxy) result(ctx context.Context, m *message, c *call) []byte {
	at, ok := m.fields["result"]
	wrong, both := m.fields["error"]
	switch {
	case ok && both:
		return append(denial(m.id, "mortise: the answer is withheld, because it is a result and an error"), '\n')
	case both:
		at = wrong
	case !ok:
		return m.data
	}
	if wire.Repeats(at.of(m.data)) {
		return append(denial(m.id, "mortise: the result is withheld, because it has a field twice"), '\n')
	}
	dec := json.NewDecoder(bytes.NewReader(at.of(m.data)))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return m.data
	}
	p.started(m, c)
	answer, err := p.ask(ctx, "result", map[string]any{"tool": p.name(c.tool), "call": m.id, "input": c.input, "response": value})
	if err != nil {
		if p.closed("result") {
			return append(denial(m.id, "mortise: the result is withheld, because the plugins could not be asked"), '\n')
		}
		return m.data
	}
	output, ok := answer["output"]
	if !ok {
		return m.data
	}
	out, err := m.with(at, output)
	if err != nil {
		return append(denial(m.id, "mortise: the result is withheld"), '\n')
	}
	return out
}

// maxTasks is how many tasks are remembered, the newest. Of others plugins see the result, and not what was called.
const maxTasks = 1024

// started remembers a call that the server executes as a task: the result comes later, under another id.
func (p *Proxy) started(m *message, c *call) {
	at, ok := m.inner("result", "task")
	if id := textOf(at.of(m.data), "taskId"); ok && id != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tasks = append(p.tasks[max(0, len(p.tasks)-maxTasks+1):], task{id, &call{tool: c.tool, input: c.input}})
	}
}

// listed leaves excluded tools out of a list, and compares the others with what they were.
func (p *Proxy) listed(ctx context.Context, m *message) []byte {
	at, ok := m.inner("result", "tools")
	if !ok {
		return m.data
	}
	var tools []json.RawMessage
	if json.Unmarshal(at.of(m.data), &tools) != nil {
		return m.data
	}
	excluded := p.cfg.Engine.Excluded("mcp", p.cfg.Session)
	left, all := []json.RawMessage{}, []listing{}
	for _, raw := range tools {
		name := textOf(raw, "name")
		if name == "" || wire.Repeats(raw) {
			p.cfg.Logger.WarnContext(ctx, "a tool without one name, or with a field twice, was left out")
			continue
		}
		all = append(all, listing{name, raw})
		if !slices.Contains(excluded, name) && !slices.Contains(excluded, p.name(name)) {
			left = append(left, raw)
		}
	}
	err := p.cfg.Pins.compare(all, func(name, hint string) {
		p.cfg.Logger.WarnContext(ctx, "a tool's description changed", "tool", name, "hint", hint)
	})
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "what tools are like was not remembered", "error", err)
	}
	if len(left) == len(tools) {
		return m.data
	}
	out, err := m.with(at, left)
	if err != nil {
		return m.data
	}
	return out
}

// String names the proxy in logs.
func (p *Proxy) String() string { return fmt.Sprintf("mcp server %s", p.cfg.Server) }
