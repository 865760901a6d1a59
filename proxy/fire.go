package proxy

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/thread"
)

// identity is that of the run; a request without a lane has none, but that of its session.
func (x *exchange) identity() abi.RunIdentity {
	id := abi.RunIdentity{AgentID: x.id.agent, Adapter: "proxy", SessionID: x.id.session}
	if x.ln != nil {
		id.ThreadID, id.RunID, id.ParentThreadID = x.ln.ID, x.ln.Run, x.ln.Parent
	}
	return id
}

// fire fires the phases that come before an inference. It reports whether something changed that later requests must
// repeat. An error is that of a plugin whose failure refuses the request.
func (x *exchange) fire(ctx context.Context, a *attached, turn, dirty bool) (bool, error) {
	rt := x.s.cfg.Runtime
	if turn {
		x.endRun(ctx, a, abi.TerminationCancelled)
	}
	begins := x.ln.Run == ""
	if begins {
		x.ln.Runs++
		x.ln.Run, x.ln.Step = "run-"+rand.Text()[:12], 0
		x.ln.Latest = x.ln.Run
		x.record(func(r Records) error { return r.Start(thread.RunStart{At: x.at, Run: x.identity()}) })
	}
	x.ln.Step++
	if rt == nil {
		return dirty, nil
	}
	if begins {
		changed, err := x.phase(ctx, a, phases.Frame{Phase: abi.RunStart})
		if dirty = dirty || changed; err != nil {
			return dirty, err
		}
	}
	changed, err := x.results(ctx, a, x.effects)
	if dirty = dirty || changed; err != nil {
		return dirty, err
	}
	for _, p := range []abi.Phase{abi.StepStart, abi.BeforeInference} {
		changed, err := x.phase(ctx, a, phases.Frame{Phase: p, Step: x.ln.Step, Request: x.inference})
		if dirty = dirty || changed; err != nil {
			return dirty, err
		}
	}
	return dirty, nil
}

// inference is what the model is about to be asked.
func (x *exchange) inference() *abi.InferenceRequest {
	out := &abi.InferenceRequest{Model: x.req.Model, System: x.req.SystemText()}
	for _, t := range x.req.Tools {
		out.Tools = append(out.Tools, abi.Tool{Name: t.Name, Parameters: wire.Value(t.Schema.Of(x.req.Body))})
	}
	return out
}

// phase fires one phase and notes its effects.
func (x *exchange) phase(ctx context.Context, a *attached, f phases.Frame) (bool, error) {
	rt := x.s.cfg.Runtime
	if len(rt.Order(f.Phase)) == 0 {
		return false, nil
	}
	f.Run, f.Messages = x.identity(), x.flat()
	out, err := rt.Fire(ctx, a.state, f)
	if err != nil {
		return false, err
	}
	return x.effects(&out), nil
}

// effects notes what plugins changed, and reports whether there was anything.
func (x *exchange) effects(out *phases.Outcome) bool {
	changed := x.edits(out)
	add := func(content []abi.ContentBlock) {
		m := abi.Message{Content: content}
		if text, i := strings.TrimSpace(m.Text()), lastWords(x.req); text != "" && i >= 0 {
			x.ln.Edits = append(x.ln.Edits, lane.Edit{Item: i, Block: -1, Text: text})
			changed = true
		}
	}
	for _, m := range out.Appended {
		add(m.Content)
	}
	for _, c := range out.Context {
		add(c.Content)
	}
	if o := out.Override; o != nil {
		x.attach().override = o
		x.override(o)
	}
	if len(out.ExcludeTools) > 0 && x.ln.Calls == 0 {
		x.ln.Left, changed = append(x.ln.Left, out.ExcludeTools...), true
	}
	if out.Stop != nil && x.refusal == "" {
		x.refusal = "mortise: plugin " + out.Stop.By + " stops the run: " + out.Stop.Code + " " + out.Stop.Detail
		x.s.stats.refused.Add(1)
	}
	return changed
}

// edits notes which texts plugins replaced.
func (x *exchange) edits(out *phases.Outcome) (changed bool) {
	for i := range out.Edits {
		if e := &out.Edits[i]; e.Kind != phases.EditPin {
			changed = x.edit(e.MessageID, e.Message.Content) || changed
		}
	}
	return changed
}

// edit notes that a plugin replaced the content of a message.
func (x *exchange) edit(id string, content []abi.ContentBlock) bool {
	item, block, ok := wire.Place(id)
	if !ok || item >= x.items {
		return false
	}
	m := abi.Message{Content: content}
	value := wire.Quote(m.Text())
	e := lane.Edit{Item: item, Block: block, Value: value}
	x.ln.Edits = append(slices.DeleteFunc(x.ln.Edits, func(o lane.Edit) bool {
		return o.Item == item && o.Block == block && len(o.Value) > 0
	}), e)
	edited(x.ln.Messages[item], e)
	return true
}

// override notes settings of this request alone.
func (x *exchange) override(o *abi.InferenceOverride) {
	set := func(name string, v any) {
		x.req.Body = wire.Apply(x.req.Body, []wire.Splice{wire.Set(x.req.Body, name, wire.Marshal(v))})
	}
	if o.Model != nil {
		set("model", *o.Model)
	}
	if o.Temperature != nil {
		set("temperature", *o.Temperature)
	}
	if o.TopP != nil {
		set("top_p", *o.TopP)
	}
	if o.MaxTokens != nil && x.proto != wire.Responses {
		set("max_tokens", *o.MaxTokens)
	}
	if again, err := wire.Parse(x.proto, x.req.Body); err == nil {
		x.req, x.body, x.acted = again, again.Body, true
	}
}

// results fires after_tool_execute for each result that is new, and notes those effects of which note is asked.
func (x *exchange) results(ctx context.Context, a *attached, note func(*phases.Outcome) bool) (bool, error) {
	rt := x.s.cfg.Runtime
	if len(rt.Order(abi.AfterToolExecute)) == 0 {
		return false, nil
	}
	changed := false
	for _, i := range x.fresh {
		for j := range x.ln.Messages[i] {
			m := &x.ln.Messages[i][j]
			if m.Role != abi.RoleTool {
				continue
			}
			did, err := x.result(ctx, a, m, note)
			if changed = changed || did; err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
}

func (x *exchange) result(ctx context.Context, a *attached, m *abi.Message, note func(*phases.Outcome) bool) (bool, error) {
	call := x.call(m.ToolCallID)
	out, err := x.s.cfg.Runtime.Fire(ctx, a.state, phases.Frame{
		Phase: abi.AfterToolExecute, Run: x.identity(), Step: x.ln.Step, Messages: x.flat(), Call: &call,
		Result:          &abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess, Content: m.Content},
		ResultMessageID: m.ID, HasTool: x.hasTool,
	})
	if err != nil {
		return false, err
	}
	changed := note(&out)
	if out.Result != nil {
		changed = x.edit(m.ID, phases.ResultContent(out.Result)) || changed
	}
	return changed, nil
}

// call finds the call of a result.
func (x *exchange) call(id string) abi.ToolCall {
	for _, v := range slices.Backward(x.ln.Messages) {
		for _, m := range v {
			for _, c := range m.ToolCalls {
				if c.ID == id {
					return c
				}
			}
		}
	}
	return abi.ToolCall{ID: id}
}

func (x *exchange) hasTool(name string) bool {
	if x.req == nil { // it was sent, and is not kept
		return true
	}
	for _, t := range x.req.Tools {
		if t.Name == name {
			return true
		}
	}
	return x.hidden[name]
}
