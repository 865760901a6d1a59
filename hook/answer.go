package hook

import (
	"fmt"
	"strings"
)

// Answer is what the plugins decided about an event, in no dialect. The zero Answer is no opinion.
type Answer struct {
	// Deny keeps the call or the prompt from being executed. The reason is for the model.
	Deny *string
	// Suspend asks a person.
	Suspend *Suspension
	// Approve skips the agent's own permission rules. It needs a grant.
	Approve bool
	// Rewrite is the agent's own input of the call.
	Rewrite any
	// Replace is the result in the tool's shape, ReplaceText the same as one text.
	Replace     any
	ReplaceText string
	// Context is for the model.
	Context []string
	// Stop ends the run, Continue has the agent continue, Veto keeps a compaction from starting.
	Stop, Continue, Veto *string
	// Focus is what a summarizer is asked to keep.
	Focus string
}

// Suspension is a call that waits for a person.
type Suspension struct {
	Reason string
	// Ticket names it where the agent itself cannot wait.
	Ticket string
	// Headless means that no person is in front of the agent.
	Headless bool
}

// encoding is an answer on its way into a dialect.
type encoding struct {
	dialect     *Dialect
	spec        *EventSpec
	out         map[string]any
	plain       string
	unsupported []string
}

// Encode writes an answer in the dialect of an event, and returns what has no form there.
func (e *Event) Encode(a *Answer) (stdout string, unsupported []string, err error) {
	enc := &encoding{dialect: e.Dialect, spec: e.Spec, out: map[string]any{}}
	if a.Stop != nil && a.Deny == nil && e.Spec.Has(FormDeny) && (e.Spec.StopDenies || !e.Spec.Has(FormStop)) {
		denies := *a // a stop at the gate must not let the call run
		denies.Deny = a.Stop
		a = &denies
	}
	enc.decision(a)
	if a.Stop != nil {
		enc.stop(*a.Stop)
	}
	if a.Continue != nil {
		enc.use(FormContinue, "continue", map[string]any{"$reason": reasonOf(*a.Continue)})
	}
	if a.Veto != nil {
		enc.use(FormVeto, "veto_compaction", map[string]any{"$reason": reasonOf(*a.Veto)})
	}
	if a.Focus != "" {
		enc.use(FormFocus, "focus_compaction", map[string]any{"$focus": a.Focus})
	}
	if len(a.Context) > 0 {
		enc.use(FormContext, "add_context", map[string]any{"$context": strings.Join(a.Context, "\n")})
	}
	switch {
	case len(enc.out) > 0:
		b, err := encodeJSON(enc.out)
		return string(b), enc.unsupported, err
	case enc.plain != "":
		return enc.plain, enc.unsupported, nil
	default:
		return e.Dialect.Noop, enc.unsupported, nil
	}
}

// decision encodes what becomes of a call, a prompt or a result. A denial wins over everything.
func (enc *encoding) decision(a *Answer) {
	switch {
	case a.Deny != nil:
		enc.use(FormDeny, "block", map[string]any{"$reason": reasonOf(*a.Deny)})
		return
	case a.Suspend != nil:
		enc.suspend(a.Suspend)
		return
	case a.Approve:
		enc.use(FormApprove, "allow", map[string]any{"$reason": "approved by mortise"})
	}
	if a.Rewrite != nil {
		enc.use(FormRewrite, "rewrite_call", map[string]any{"$input": a.Rewrite})
	}
	if a.Replace != nil {
		enc.replace("replace_result", a.Replace, visible(a.ReplaceText))
	}
}

// replace encodes a result, which in Copilot CLI stays a failure if it was one.
func (enc *encoding) replace(what string, output any, text string) {
	kind := "success"
	if object, ok := output.(map[string]any); ok {
		if s, ok := object["resultType"].(string); ok {
			kind = s
		}
	}
	enc.use(FormReplace, what, map[string]any{"$output": output, "$text": text, "$result_type": kind})
}

// suspend asks in the way that the dialect has: defer, ask, or a denial that names the ticket.
func (enc *encoding) suspend(s *Suspension) {
	reason := map[string]any{"$reason": reasonOf(s.Reason)}
	switch {
	case s.Headless && enc.spec.Has(FormDefer):
		enc.use(FormDefer, "suspend", reason)
	case !s.Headless && enc.spec.Has(FormAsk):
		enc.use(FormAsk, "suspend", reason)
	default:
		text := fmt.Sprintf("%s (waits for approval: mortise hook approve %s, then make the same call again)", reasonOf(s.Reason), s.Ticket)
		enc.use(FormDeny, "suspend", map[string]any{"$reason": text})
	}
}

// stop ends the run. Where that has no form the call was denied, or its result is withheld.
func (enc *encoding) stop(why string) {
	why = reasonOf(why)
	switch {
	case enc.spec.Has(FormStop):
		enc.use(FormStop, "stop", map[string]any{"$stop": why})
	case enc.spec.Has(FormDeny):
	case enc.spec.Kind == EventPost && enc.spec.Has(FormReplace):
		enc.replace("stop", enc.dialect.resultOf(why), why)
	default:
		enc.unsupported = append(enc.unsupported, "stop")
	}
}

// use fills a form of the dialect and lays it over the output.
func (enc *encoding) use(f Form, what string, values map[string]any) {
	form := enc.spec.Forms[f]
	if form == nil {
		enc.unsupported = append(enc.unsupported, what)
		return
	}
	filled := fill(form, values)
	if s, ok := filled.(string); ok {
		enc.plain = s
		return
	}
	if object, ok := filled.(map[string]any); ok {
		merge(enc.out, object)
	}
}

// fill copies a form with its placeholders replaced.
func fill(form any, values map[string]any) any {
	switch t := form.(type) {
	case string:
		if v, ok := values[t]; ok {
			return v
		}
		return t
	case map[string]any:
		out := make(map[string]any, len(t))
		for k := range t {
			out[k] = fill(t[k], values)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i := range t {
			out[i] = fill(t[i], values)
		}
		return out
	default:
		return form
	}
}

// merge lays one object over another, level by level. Forms share nothing but the envelope.
func merge(into, from map[string]any) {
	for k, v := range from {
		inner, ok := v.(map[string]any)
		old, there := into[k].(map[string]any)
		if ok && there && k == "hookSpecificOutput" {
			merge(old, inner)
			continue
		}
		into[k] = v
	}
}

// reasonOf is never empty: some agents drop an answer without a reason.
func reasonOf(s string) string {
	if strings.TrimSpace(s) == "" {
		return "mortise: no reason was given"
	}
	return s
}

// visible is a text that an agent does not take for none.
func visible(s string) string {
	if strings.TrimSpace(s) == "" {
		return "[empty]"
	}
	return s
}

// PolicyOutput is the standard output for an event when no plugin can be asked: nothing, or what keeps the agent from
// continuing, if the event has a form for that.
func (d *Dialect) PolicyOutput(spec *EventSpec, closed bool, reason string) (stdout string, supported bool) {
	a := &Answer{}
	switch {
	case !closed:
	case spec.Has(FormDeny):
		a.Deny = &reason
	case spec.Has(FormReplace) && (d.ResultText || d.Result != nil):
		a.Replace, a.ReplaceText = d.resultOf(reason), reason
	case spec.Has(FormStop):
		a.Stop = &reason
	}
	e := &Event{Dialect: d, Spec: spec}
	out, unsupported, err := e.Encode(a)
	if err != nil || !closed {
		return d.Noop, !closed
	}
	return out, len(unsupported) == 0 && out != d.Noop
}
