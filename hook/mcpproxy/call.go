package mcpproxy

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// gate asks the plugins about a call, and passes it on, with other arguments perhaps, or answers it.
func (p *Proxy) gate(ctx context.Context, m *message, c *call, h *held) {
	line, reason := p.judge(ctx, m, c)
	p.mu.Lock()
	delete(p.held, m.key)
	dropped := h.cancelled || ctx.Err() != nil
	p.mu.Unlock()
	var err error
	switch {
	case dropped: // who cancels a call wants no answer
	case reason != "":
		err = p.toClient.line(c.denial(m.id, reason))
	default:
		p.asks(m, asked{call: c})
		err = p.toServer.line(line)
	}
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "a call was lost", "error", err)
	}
}

// judge returns the message to pass on, or why there is none.
func (p *Proxy) judge(ctx context.Context, m *message, c *call) (line []byte, reason string) {
	if c.named == "" {
		return nil, "mortise: the call names no tool, resource or prompt"
	}
	if wire.Repeats(m.fields["params"].of(m.data)) {
		return nil, "mortise: the call has a field twice"
	}
	if why := p.pinned(m); why != "" {
		return nil, why
	}
	answer, err := p.ask(ctx, "call", map[string]any{"tool": c.tool, "call": m.id, "input": c.input})
	switch {
	case err != nil && p.closed("call"):
		return nil, "mortise: the plugins could not be asked"
	case err != nil || answer == nil:
		return m.data, ""
	}
	if why, ok := answer["deny"].(string); ok {
		return nil, why
	}
	rewritten, ok := answer["input"]
	if !ok {
		return m.data, ""
	}
	if line, err = c.rewrite(m, rewritten); err != nil {
		return nil, "mortise: the call could not be rewritten"
	}
	return line, ""
}

// pinned is why a call of a tool that changed is denied.
func (p *Proxy) pinned(m *message) string {
	if m.method != methodTool {
		return ""
	}
	return p.cfg.Pins.blocked(m.text("params", "name"))
}

// response passes a message of the server on, or has plugins look at it first. Where they look at results, or tools have pins, an answer to
// nothing that the server was asked is dropped: one that comes twice, before the server has the call, or under an id that is only like its own.
func (p *Proxy) response(ctx context.Context, line []byte) error {
	if p.wants("result") && odd(line) {
		p.cfg.Logger.WarnContext(ctx, "a line of the server that is no message was dropped")
		return nil
	}
	if all, ok := batchOf(line); ok {
		return p.batch(ctx, line, all, p.toClient, p.response, func(m *message) bool { return m.response() || m.method == methodSampling })
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
	case !p.wants("result") || a.call == nil && m.method != methodSampling:
		return p.toClient.line(line)
	case a.call == nil && m.id == "":
		return nil // which some client could take for a request
	}
	p.results.add(func() {
		var err error
		if a.call == nil {
			err = p.sampled(ctx, m)
		} else {
			err = p.toClient.line(p.result(ctx, m, a.call))
		}
		if err != nil {
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

// result lets plugins replace the result of a call: all texts in it, whatever their fields are called.
func (p *Proxy) result(ctx context.Context, m *message, c *call) []byte {
	at, ok := m.fields["result"]
	wrong, both := m.fields["error"]
	switch {
	case ok && both:
		return c.denial(m.id, "mortise: the answer is withheld, because it is a result and an error")
	case both:
		at = wrong
	case !ok:
		return m.data
	}
	p.started(m, c)
	line, why := p.replaced(ctx, m, at, c)
	if why != "" {
		return c.denial(m.id, why)
	}
	return line
}

// sampled lets plugins replace what a server asks the client's model. It answers the server by itself where that is withheld.
func (p *Proxy) sampled(ctx context.Context, m *message) error {
	c := &call{method: m.method, tool: m.method, input: map[string]any{"server": p.cfg.Server}}
	line, why := p.replaced(ctx, m, m.fields["params"], c)
	if why != "" {
		return p.toServer.line(c.denial(m.id, why))
	}
	return p.toClient.line(line)
}

// replaced returns the message with what plugins made of a part of it, or why it is withheld.
func (p *Proxy) replaced(ctx context.Context, m *message, at span, c *call) (line []byte, reason string) {
	part := at.of(m.data)
	if wire.Repeats(part) {
		return nil, "mortise: the result is withheld, because it has a field twice"
	}
	answer, err := p.ask(ctx, "result", map[string]any{"tool": c.tool, "call": m.id, "input": c.input, "response": decoded(part)})
	switch {
	case err != nil && p.closed("result"):
		return nil, "mortise: the result is withheld, because the plugins could not be asked"
	case err != nil:
		return m.data, ""
	}
	if why, ok := answer["deny"].(string); ok {
		return nil, why
	}
	output, ok := answer["output"]
	if !ok {
		return m.data, ""
	}
	return m.with(at, output), ""
}

// maxTasks is how many tasks are remembered, the newest. Of others plugins see the result, and not what was called.
const maxTasks = 1024

// started remembers a call that the server executes as a task: the result comes later, under another id.
func (p *Proxy) started(m *message, c *call) {
	at, ok := m.inner("result", "task")
	if id := textOf(at.of(m.data), "taskId"); ok && id != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tasks = append(p.tasks[max(0, len(p.tasks)-maxTasks+1):], task{id, c})
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
	return m.with(at, left)
}
