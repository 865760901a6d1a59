package agent

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// contextStore collects what plugins want of the next request.
type contextStore struct {
	messages map[string]abi.ContextMessage
	shown    map[string]shown
	exclude  []string
	include  [][]string
	override *abi.InferenceOverride
}

// shown remembers what was inserted under a key, for the cooldown.
type shown struct {
	step int
	text string
}

func (c *contextStore) add(out phases.Outcome) {
	for _, m := range out.Context {
		if c.messages == nil {
			c.messages = make(map[string]abi.ContextMessage)
		}
		c.messages[m.Key] = m
	}
	c.exclude = append(c.exclude, out.ExcludeTools...)
	c.include = append(c.include, out.IncludeTools...)
	if out.Override != nil {
		c.override = phases.MergeOverrides(c.override, out.Override)
	}
}

// take returns the context messages due at this step, in order, and forgets
// what was meant for one request only.
func (c *contextStore) take(step int) []abi.ContextMessage {
	var due []abi.ContextMessage
	for key, m := range c.messages {
		text := blockText(m.Content)
		last, seen := c.shown[key]
		if !seen || m.CooldownTurns == 0 || last.text != text || step-last.step >= m.CooldownTurns {
			due = append(due, m)
			if c.shown == nil {
				c.shown = make(map[string]shown)
			}
			c.shown[key] = shown{step: step, text: text}
		}
		if !m.Persistent {
			delete(c.messages, key)
		}
	}
	slices.SortFunc(due, func(a, b abi.ContextMessage) int {
		if d := targetRank(a.Target) - targetRank(b.Target); d != 0 {
			return d
		}
		if d := a.Priority - b.Priority; d != 0 {
			return d
		}
		return strings.Compare(a.Key, b.Key)
	})
	return due
}

func targetRank(t abi.ContextTarget) int {
	return slices.Index([]abi.ContextTarget{
		abi.TargetSystem, abi.TargetSession, abi.TargetConversation, abi.TargetSuffixSystem,
	}, t)
}

func blockText(blocks []abi.ContentBlock) string {
	m := abi.Message{Content: blocks}
	return m.Text()
}

// request builds what is sent to the model: the system prompt, the view, and
// the context messages at their places.
func (r *run) request() llm.Request {
	due := r.context.take(r.step)
	messages := make([]abi.Message, 0, len(r.view)+len(due)+1)
	if r.who.prompt != "" {
		messages = append(messages, abi.Message{
			ID: r.requestID("system"), Role: abi.RoleSystem, Content: []abi.ContentBlock{abi.Text(r.who.prompt)},
		})
	}
	lead := 0
	for lead < len(r.view) && r.view[lead].Role == abi.RoleSystem {
		lead++
	}
	var head, session, tail []abi.Message
	for _, m := range due {
		msg := contextMessage(m)
		msg.ID = r.requestID(msg.ID)
		switch m.Target {
		case abi.TargetSystem:
			head = append(head, msg)
		case abi.TargetSuffixSystem:
			tail = append(tail, msg)
		case abi.TargetSession, abi.TargetConversation:
			session = append(session, msg)
		default:
			session = append(session, msg)
		}
	}
	messages = slices.Concat(messages, head, r.view[:lead], session, r.view[lead:], tail)
	override := r.override()
	tools := r.tools()
	r.context.exclude, r.context.include, r.context.override = nil, nil, nil
	return llm.Request{
		ThreadID: r.id.ThreadID, RunID: r.id.RunID, AgentID: r.id.AgentID, Step: r.step, Model: r.who.model,
		Messages: messages, Tools: tools, Override: override, KeepMalformed: r.who.phases.CanRewrite(),
	}
}

// override is what the agent, the request and the plugins change of the next inference.
func (r *run) override() *abi.InferenceOverride {
	return phases.MergeOverrides(r.who.override, r.req.Override, r.context.override)
}

// preview is what the model would be asked if the phase had no effects.
func (r *run) preview() *abi.InferenceRequest {
	o := r.override()
	if o == nil {
		o = &abi.InferenceOverride{}
	}
	out := &abi.InferenceRequest{
		Model: r.who.model, FallbackModels: o.FallbackModels, Temperature: o.Temperature, TopP: o.TopP, MaxTokens: o.MaxTokens,
		ReasoningEffort: o.ReasoningEffort, Tools: r.context.filter(r.listTools()), System: r.who.prompt,
	}
	if o.Model != nil {
		out.Model = *o.Model
	}
	if out.FallbackModels == nil {
		out.FallbackModels = r.cfg.Retry.FallbackModels
	}
	return out
}

// requestID is the id of a message that is part of requests only. It stays the
// same from request to request, unless the log holds it.
func (r *run) requestID(id string) string {
	if r.thread.has(id) {
		return r.freshID()
	}
	return id
}

func contextMessage(m abi.ContextMessage) abi.Message {
	role := m.Role
	if role == "" {
		role = abi.RoleSystem
	}
	return abi.Message{
		ID: "context/" + m.Key, Role: role, Content: m.Content, Visibility: abi.VisibilityInternal,
	}
}

// tools are those of the config, less what plugins excluded, and only what they
// included if they did.
func (r *run) tools() []abi.Tool {
	r.known = r.listTools()
	r.offered = r.context.filter(r.known)
	return r.offered
}

// filter leaves out what plugins want left out.
func (c *contextStore) filter(tools []abi.Tool) []abi.Tool {
	if len(c.exclude) == 0 && len(c.include) == 0 {
		return tools
	}
	allowed := slices.Concat(c.include...)
	return slices.DeleteFunc(slices.Clone(tools), func(t abi.Tool) bool {
		return len(c.include) > 0 && !slices.Contains(allowed, t.Name) || slices.Contains(c.exclude, t.Name)
	})
}

// listTools are the tools of the agent and those of the caller.
func (r *run) listTools() []abi.Tool {
	known := r.who.tools.Tools()
	for _, t := range r.req.FrontendTools {
		if !slices.ContainsFunc(known, func(o abi.Tool) bool { return o.Name == t.Name }) {
			known = append(slices.Clip(known), t)
		}
	}
	return known
}
