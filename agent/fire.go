package agent

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// frame is what differs from phase to phase.
type frame struct {
	// messages replaces the view where a step has written more than the log holds; they are those
	// of the step, if that is given.
	messages []abi.Message
	step     *batch
	response *abi.Response
	call     *abi.ToolCall
	result   *abi.ToolResult
	resultID string
	// key is the idempotency key of the call, rewrittenBy are the plugins that rewrote it.
	key         string
	rewrittenBy []string
	// end is set at run_end.
	end *abi.RunEnding
	// compaction is set at the phases around one.
	compaction *abi.Compaction
}

// fire fires a phase at the plugins and applies the outcome. It returns a stop that a
// plugin asked for, too.
func (r *run) fire(ctx context.Context, p abi.Phase, f frame) (phases.Outcome, *Termination, error) {
	if f.step != nil {
		f.messages = f.step.messages()
	}
	r.send(ctx, Event{Type: EventPhase, Phase: p, Call: f.call, RewrittenBy: f.rewrittenBy})
	out, err := r.who.phases.Fire(ctx, r.state, r.frame(p, f))
	// A phase may fail after its hooks' work was committed. What they hid must be
	// hidden then too, so the outcome counts in any case.
	r.apply(ctx, out, f.messages == nil)
	if f.step != nil {
		f.step.changed(&out)
	}
	r.rewrote = r.rewrote || rewrites(out, f.resultID)
	r.showChange(ctx)
	if err != nil {
		return out, nil, err
	}
	if showsNotices(p) {
		r.notices = nil
	}
	if out.Stop != nil {
		return out, &Termination{Type: Stopped, Code: out.Stop.Code, Detail: out.Stop.Detail}, nil
	}
	return out, nil, nil
}

// frame is the moment at which a phase fires.
func (r *run) frame(p abi.Phase, f frame) phases.Frame {
	out := phases.Frame{
		Phase: p, Run: r.id, Step: r.step, Messages: f.messages,
		Response: f.response, Call: f.call, RewrittenBy: f.rewrittenBy, Result: f.result, ResultMessageID: f.resultID,
		Notices: r.due(p), Compaction: f.compaction, End: f.end, Waiting: r.thread.waiting(), HasTool: r.hasTool,
	}
	if out.Messages == nil {
		out.Messages = r.view
	}
	if f.call != nil {
		call, name := *f.call, f.call.Name
		call.IdempotencyKey = f.key
		out.Call = &call
		out.CheckArguments = func(arguments any) error { return r.checkArguments(name, arguments) }
	}
	if p == abi.BeforeInference {
		out.Request = r.preview
	}
	return out
}

// hasTool reports whether there is a tool of that name, whatever plugins left out.
func (r *run) hasTool(name string) bool {
	return slices.ContainsFunc(r.known, func(t abi.Tool) bool { return t.Name == name })
}

// rewrites reports whether plugins changed the content of a message that the listener may
// know already: not that of the result under way.
func rewrites(out phases.Outcome, resultID string) bool {
	return slices.ContainsFunc(out.Edits, func(e phases.Edit) bool {
		return e.Kind != phases.EditPin && e.MessageID != resultID
	})
}

// showsNotices reports whether notices are shown at a phase: the first of a step or of
// the run, and the last.
func showsNotices(p abi.Phase) bool {
	return p == abi.StepStart || p == abi.RunStart || p == abi.RunEnd
}

// due are the notices to show at a phase. Each is shown until a phase has gone
// through with it.
func (r *run) due(p abi.Phase) []abi.Notice {
	if !showsNotices(p) {
		return nil
	}
	return r.notices
}

func (r *run) apply(ctx context.Context, out phases.Outcome, logged bool) {
	r.thread.edit(out.Edits)
	if logged && len(out.Appended) > 0 {
		r.thread.append(out.Appended...)
	}
	if logged && len(out.Edits)+len(out.Appended) > 0 {
		r.refresh()
	}
	r.context.add(out)
	r.thread.notify(out.Notifications)
	if out.Compact != nil && r.cfg.Compactor != nil {
		r.cfg.Compactor.Request(r.thread.id, out.Compact.Focus)
	}
	for _, e := range out.Emitted {
		r.send(ctx, Event{Type: EventCustom, Name: e.EventType, By: e.By, Payload: e.Payload})
	}
}
