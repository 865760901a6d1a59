package hook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
	"github.com/mortise-dev/mortise/phases"
)

// pre asks the gate and then fires the last phase before the tool.
func (h *handling) pre(ctx context.Context) error {
	call := h.call()
	if h.excluded(call.Name) {
		h.deny(fmt.Sprintf("the tool %s is not available", call.Name), "")
		return nil
	}
	if call.Name == ProbeTool {
		h.deny(ProbeReason, "")
		return nil
	}
	if key := h.event.Call.respelled(); key != "" {
		h.deny(fmt.Sprintf("the argument %.40q is spelled in another case", key), "")
		return nil
	}
	if h.decidesItself() {
		h.deny("a person has to decide about tickets and what is installed, not the agent", "")
		return nil
	}
	f := toolFrame{Frame: phases.Frame{Call: &call}}
	out, failed, err := h.phase(ctx, abi.ToolGate, &f.Frame)
	if err != nil {
		return err
	}
	if failed != "" {
		h.deny(fmt.Sprintf("plugin %s failed", failed), failed)
		return nil
	}
	gate := out.Gate
	if f.rewritten(&out) && !stands(gate) {
		if gate, err = h.recheck(ctx, &f); err != nil {
			return err
		}
	}
	if !h.gated(gate) || h.answer.Stop != nil {
		return nil
	}
	out, failed, err = h.phase(ctx, abi.BeforeToolExecute, &f.Frame)
	switch {
	case err != nil:
		return err
	case failed != "":
		h.deny(fmt.Sprintf("plugin %s failed", failed), failed)
		return nil
	case f.rewritten(&out):
		if gate, err = h.recheck(ctx, &f); err != nil || !h.gated(gate) {
			return err
		}
	}
	h.rewrite(&f)
	return nil
}

// excluded reports whether a plugin excluded a tool. A server that is wrapped knows it by its name alone, too.
func (h *handling) excluded(name string) bool {
	all := h.lane.saved.Excluded
	return slices.Contains(all, name) || h.event.Dialect.Internal && slices.Contains(all, h.event.Call.Tool)
}

// A call of ProbeTool is denied with ProbeReason, so that a check sees a whole round trip. No agent has a tool of that name.
const (
	ProbeTool   = "mortise_probe"
	ProbeReason = "the probe was received"
)

// toolFrame is the frame of a call that plugins may rewrite.
type toolFrame struct{ phases.Frame }

// rewritten takes over other arguments of the call.
func (f *toolFrame) rewritten(out *phases.Outcome) bool {
	if out.Rewrite == nil {
		return false
	}
	call := *f.Call
	call.Arguments = out.Rewrite.Arguments
	f.Call, f.RewrittenBy = &call, slices.Concat(f.RewrittenBy, out.Rewrite.By)
	return true
}

// stands reports whether a decision holds although the call was rewritten meanwhile.
func stands(g *phases.GateOutcome) bool {
	return g != nil && g.Decision.Action != abi.GateAllow && g.Decision.Action != abi.GateSetResult
}

func (h *handling) call() abi.ToolCall {
	id := h.event.CallID
	if id == "" {
		id = h.engine.cfg.NewID()
	}
	return abi.ToolCall{ID: id, Name: h.event.Tool, Kind: h.event.Call.Kind.abiKind(), Arguments: h.event.Call.Args}
}

func (h *handling) recheck(ctx context.Context, f *toolFrame) (*phases.GateOutcome, error) {
	out, err := h.program.Runtime.Recheck(ctx, h.lane.st, f.Frame)
	return out.Gate, err
}

func (h *handling) deny(reason, by string) {
	reason = "mortise: " + reason
	h.answer.Deny, h.record.By = &reason, by
}

// gated takes over a decision of the gate and reports whether the call may continue.
func (h *handling) gated(g *phases.GateOutcome) bool {
	if g == nil {
		return true
	}
	h.record.By = g.By
	switch d := &g.Decision; d.Action {
	case abi.GateAllow:
		h.answer.Approve = h.answer.Approve || slices.Contains(h.program.MayApprove, g.By)
		return true
	case abi.GateSuspend:
		return h.suspend(d, g.By)
	case abi.GateSetResult:
		text := d.Reason
		if d.Result != nil {
			m := abi.Message{Content: phases.ResultContent(d.Result)}
			text = m.Text()
		}
		h.deny(fmt.Sprintf("the call was not executed; plugin %s answered it: %s", g.By, text), g.By)
		h.record.Decision = string(abi.GateSetResult)
		return false
	default:
		h.deny(d.Reason, g.By)
		return false
	}
}

// suspend asks a person, unless one has decided about this very call already.
func (h *handling) suspend(d *abi.GateDecision, by string) bool {
	reason := d.Reason
	if d.Ticket != nil && reason == "" {
		reason = d.Ticket.Message
	}
	if h.approved { // the gate asks again about what a plugin made of the call
		return true
	}
	if h.engine.cfg.Tickets == nil {
		h.deny(reason+" (it needs an approval, and there is no place for tickets)", by)
		return false
	}
	t, err := h.engine.cfg.Tickets.ask(h.event, by, reason, h.at, h.engine.cfg.Logger)
	switch {
	case err != nil:
		h.deny(fmt.Sprintf("%s (the ticket could not be stored)", reason), by)
		h.record.Error = err.Error()
		return false
	case t.Status == TicketApproved:
		h.record.Ticket, h.approved = t.ID, true
		return true
	case t.Status == TicketRejected:
		h.deny("the call was rejected"+suffix(": ", t.Note), by)
		h.record.Ticket = t.ID
		return false
	}
	h.record.Ticket = t.ID
	h.answer.Suspend = &Suspension{Reason: "mortise: " + reason, Ticket: t.ID, Headless: h.headless}
	return false
}

func suffix(separator, s string) string {
	if s == "" {
		return ""
	}
	return separator + s
}

// rewrite answers with other arguments, and announces them.
func (h *handling) rewrite(f *toolFrame) {
	native := h.event.Call.native
	if len(f.RewrittenBy) > 0 {
		h.rewrittenBy = f.RewrittenBy
		native = h.event.Call.Native(f.Call.Arguments)
		if h.event.Spec.Merges && removes(h.event.Call.native, native) {
			h.unsupported("rewrite_call")
			return
		}
		native = dynamic.Exact(native, h.event.Call.native, h.event.exact("input"))
		h.answer.Rewrite = native
		h.announce(f.RewrittenBy)
	}
	if h.wraps() {
		if wrapped, ok := wrap(native, h.event.Call.names["command"]); ok {
			h.answer.Rewrite = dynamic.Exact(wrapped, h.event.Call.native, h.event.exact("input"))
		}
	}
}

// wraps reports whether the call's shell command is wrapped, so that its failure is a success of the tool.
func (h *handling) wraps() bool {
	return h.program.WrapShell && h.event.Call.Kind == KindShell && h.event.Dialect.keepsFailures()
}

// announce names each plugin that changed the call, once, with its reason.
func (h *handling) announce(by []string) {
	if !h.event.Spec.Has(FormContext) {
		return
	}
	for i, name := range by {
		if slices.Contains(by[:i], name) || slices.Contains(h.program.Quiet, name) {
			continue
		}
		h.say(fmt.Sprintf("mortise: %s changed this call%s", name, suffix(": ", h.record.note(name, abi.EffectRewriteCall))))
	}
}

// removes reports whether keys of the first object are missing in the second.
func removes(before, after any) bool {
	a, _ := before.(map[string]any)
	b, ok := after.(map[string]any)
	if !ok {
		return true
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			return true
		}
	}
	return false
}

// keepsFailures reports whether the result of a failed call comes as an event that can change nothing.
func (d *Dialect) keepsFailures() bool {
	for _, e := range d.Events {
		if e.Kind == EventFailed && !e.Has(FormReplace) {
			return true
		}
	}
	return false
}

// Around a wrapped command. The line break ends a comment or a here-document of the command.
const (
	wrapBefore = "( "
	wrapAfter  = "\n) || echo \"exit status $?\""
)

func wrap(native any, key string) (any, bool) {
	args, ok := native.(map[string]any)
	command, text := args[key].(string)
	if !ok || !text || strings.HasSuffix(command, wrapAfter) {
		return nil, false
	}
	args = maps.Clone(args)
	args[key] = wrapBefore + command + wrapAfter
	return args, true
}

// responded is what a tool answered, and whether that is an error.
func (e *Event) responded() (value any, status abi.ToolStatus) {
	value, status = e.Response, abi.ToolSuccess
	if _, text := value.(string); !text {
		value = e.exact("response")
	}
	if e.Spec.Kind == EventFailed {
		status = abi.ToolError
		if e.Error != "" {
			value = e.Error
		}
	}
	if m, ok := value.(map[string]any); ok && m["isError"] == true {
		status = abi.ToolError
	}
	return value, status
}

// post lets the plugins see, and replace, a result before the model does.
func (h *handling) post(ctx context.Context) error {
	value, status := h.event.responded()
	r, err := readResult(value, h.event.Dialect.Tools[h.event.Tool].Result)
	if err != nil {
		return fmt.Errorf("hook: %s: %w", h.event.Tool, err)
	}
	call := h.call()
	id := "result_" + call.ID
	f := phases.Frame{Call: &call, ResultMessageID: id, Result: &abi.ToolResult{
		CallID: call.ID, ToolName: call.Name, Status: status, Content: r.content(), Data: dynamic.Numbers(dataOf(value)),
	}}
	out, failed, err := h.phase(ctx, abi.AfterToolExecute, &f)
	switch {
	case err != nil:
		return err
	case failed != "":
		reason := fmt.Sprintf("the result is withheld, because plugin %s failed", failed)
		r.withhold("[mortise: " + reason + "]")
		if h.event.Spec.Has(FormDeny) {
			h.deny(reason, failed)
		}
		h.replacedBy = []string{failed}
	case out.Result != nil:
		r.replace(phases.ResultContent(out.Result))
		for i := range out.Edits {
			h.replacedBy = append(h.replacedBy, out.Edits[i].By)
		}
	}
	if r.changed() {
		if h.wraps() {
			r.keepStatus()
		}
		h.lane.forget(r)
		h.answer.Replace = r.rebuilt()
		h.answer.ReplaceText = plainText(h.answer.Replace)
		h.record.By = strings.Join(h.replacedBy, ",")
	}
	answer := r.answered()
	h.used(call.Arguments)
	h.shown(answer)
	h.logged(
		abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{call}},
		abi.Message{Role: abi.RoleTool, ToolCallID: call.ID, Content: []abi.ContentBlock{abi.Text(answer)}},
	)
	h.giveBack()
	return nil
}

// maxData bounds the structured result that plugins get besides its texts.
const maxData = 64

// dataOf is a structured result, if it is small; its texts are in the content in any case.
func dataOf(v any) any {
	m, ok := v.(map[string]any)
	if !ok || count(m, maxData) > maxData {
		return nil
	}
	return copied(m)
}

// count counts values until there are more than limit.
func count(v any, limit int) int {
	n := 1
	switch t := v.(type) {
	case []any:
		for i := 0; i < len(t) && n <= limit; i++ {
			n += count(t[i], limit)
		}
	case map[string]any:
		for k := range t {
			if n += count(t[k], limit); n > limit {
				break
			}
		}
	}
	return n
}
