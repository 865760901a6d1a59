package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// handling is one event on its way.
type handling struct {
	engine   *Engine
	program  *Program
	lane     *lane
	event    *Event
	headless bool
	ctx      context.Context //nolint:containedctx // of the event, for as long as it is handled
	at       time.Time
	answer   Answer
	record   *Record
	// approved means that a person has let this call pass.
	approved bool
	// rewrittenBy are the plugins that rewrote the call, replacedBy those that replaced the result.
	rewrittenBy, replacedBy []string
}

// fire fires the phases of the event.
func (h *handling) fire(ctx context.Context) error {
	h.record.Kind = h.event.Call.Kind
	switch h.event.Spec.Kind {
	case EventPre:
		return h.pre(ctx)
	case EventPost, EventFailed:
		return h.post(ctx)
	case EventPrompt:
		return h.prompt(ctx)
	case EventBatch:
		return h.batch(ctx)
	case EventEnd, EventFailure:
		return h.end(ctx)
	case EventCompact:
		return h.compact(ctx)
	case EventCompacted:
		return h.compacted(ctx)
	case EventSession:
		h.lane.saved.Ended = true // a prompt follows, in dialects where prompts repeat
		return h.session()
	case EventClose:
		h.lane.closed = true
	}
	return nil
}

// phase fires one phase and takes over what every phase may bring. Failed names a plugin whose failure ends a run.
func (h *handling) phase(ctx context.Context, p abi.Phase, f *phases.Frame) (out phases.Outcome, failed string, err error) {
	f.Phase, f.Run, f.Step = p, h.lane.run, h.lane.saved.Step
	out, err = h.program.Runtime.Fire(ctx, h.lane.st, *f)
	if err != nil {
		if cause := (*phases.HookError)(nil); errors.As(err, &cause) && ctx.Err() == nil {
			h.record.Failed = append(h.record.Failed, cause.Plugin)
			h.engine.cfg.Logger.WarnContext(ctx, "plugin failed closed", "plugin", cause.Plugin, "phase", string(p))
			return phases.Outcome{}, cause.Plugin, nil
		}
		return out, "", err
	}
	h.take(&out)
	return out, "", nil
}

// take takes over the effects that mean the same at every phase.
func (h *handling) take(out *phases.Outcome) {
	for i := range out.Context {
		m := abi.Message{Content: out.Context[i].Content}
		h.say(m.Text())
	}
	if h.event.Spec.Kind != EventEnd {
		for i := range out.Appended {
			h.say(out.Appended[i].Text())
		}
	}
	if out.Stop != nil && h.answer.Stop == nil {
		why := strings.TrimSpace(cmp.Or(out.Stop.Detail, out.Stop.Code))
		h.answer.Stop = &why
		h.record.By = out.Stop.By
	}
	for _, name := range out.ExcludeTools {
		h.exclude(name)
	}
	for what, there := range map[string]bool{
		"include_tools": len(out.IncludeTools) > 0, "override_inference": out.Override != nil, "request_compaction": out.Compact != nil,
		"notify": len(out.Notifications) > 0, "replace_response": out.Response != nil,
		"edit_messages": slices.ContainsFunc(out.Edits, func(e phases.Edit) bool { return e.Kind != phases.EditPin && out.Result == nil }),
	} {
		if there {
			h.unsupported(what)
		}
	}
}

func (h *handling) say(text string) {
	if strings.TrimSpace(text) != "" {
		h.answer.Context = append(h.answer.Context, text)
	}
}

// exclude has later calls of a tool denied, because no hook can leave it out of a request.
func (h *handling) exclude(tool string) {
	if all := h.lane.saved.Excluded; !slices.Contains(all, tool) && len(all) < maxExcluded {
		h.lane.saved.Excluded = append(h.lane.saved.Excluded, tool)
		h.lane.dirty = true
		h.say(fmt.Sprintf("mortise: the tool %s is not available; calls of it are denied.", tool))
	}
}

// maxExcluded bounds the tools that are excluded in a session.
const maxExcluded = 256

func (h *handling) unsupported(what string) {
	if !slices.Contains(h.record.Unsupported, what) {
		h.record.Unsupported = append(h.record.Unsupported, what)
		slices.Sort(h.record.Unsupported)
	}
}

// encode writes the answer. A decision of a plugin that fails closed and that has no form denies the call instead.
func (h *handling) encode() (string, error) {
	out, unsupported, err := h.event.Encode(&h.answer)
	if err != nil {
		return "", err
	}
	for _, what := range unsupported {
		h.unsupported(what)
	}
	if slices.Contains(h.record.Unsupported, "rewrite_call") && h.answer.Deny == nil {
		for _, by := range h.rewrittenBy {
			if h.program.failsClosed(by, abi.ToolGate) || h.program.failsClosed(by, abi.BeforeToolExecute) {
				return h.denied(fmt.Sprintf("plugin %s has to change this call, and %s has no way to do that", by, h.event.Dialect.Agent))
			}
		}
	}
	return out, nil
}

func (h *handling) denied(reason string) (string, error) {
	h.answer = Answer{Deny: &reason}
	out, _, err := h.event.Encode(&h.answer)
	return out, err
}

// failsClosed reports whether a failure of the plugin at a phase ends what it is about.
func (p *Program) failsClosed(plugin string, at abi.Phase) bool {
	for i := range p.Plugins {
		d := &p.Plugins[i]
		if plugin != "" && d.Name != plugin {
			continue
		}
		for _, hk := range d.Hooks {
			closed := hk.OnFailure == abi.FailRun || hk.OnFailure == "" && hk.Mode == abi.ModeGate
			if hk.Phase == at && closed {
				return true
			}
		}
	}
	return false
}

// Blind returns a plugin that fails closed at results, of which it sees texts alone: images, PDFs and other binary content reach the model
// unseen. It returns nothing where there is none.
func (p *Program) Blind() string {
	for i := range p.Plugins {
		if name := p.Plugins[i].Name; p.failsClosed(name, abi.AfterToolExecute) {
			return name
		}
	}
	return ""
}

// Wants reports whether any plugin has a hook at a phase of the event, or needs the event to fail closed.
func (p *Program) Wants(e *EventSpec) bool {
	return p.withholds(e) || slices.ContainsFunc(e.Phases, func(at abi.Phase) bool { return len(p.Runtime.Order(at)) > 0 })
}

// Closed reports whether the agent may not continue without an answer: a plugin fails closed at a phase of the event.
func (p *Program) Closed(e *EventSpec) bool {
	return p.withholds(e) || slices.ContainsFunc(e.Phases, func(at abi.Phase) bool { return p.failsClosed("", at) })
}

// withholds reports whether calls are denied for a plugin that fails closed at their results: an agent that cannot have a result withheld by a
// client that is missing, or sends it all the same when the session is resumed, must have none.
func (p *Program) withholds(e *EventSpec) bool {
	return e.Gate && p.failsClosed("", abi.AfterToolExecute)
}
