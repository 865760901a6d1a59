package proxy

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/thread"
)

// messages fills in what plugins see of each item that no compaction replaces, with the edits that were made.
func (x *exchange) messages() {
	for i := range x.req.Items {
		if i == len(x.ln.Messages) {
			x.ln.Messages = append(x.ln.Messages, nil)
		}
		if x.ln.Messages[i] == nil && (!x.ln.Swap.Has(i) || i >= x.ln.Kept) {
			x.ln.Messages[i] = converted(x.req, x.ln.State, i)
		}
	}
}

// converted are the messages of an item, with the edits that were made.
func converted(r *wire.Request, st *lane.State, i int) []abi.Message {
	list := r.Convert(i)
	for _, e := range st.Edits {
		if e.Item == i && len(e.Value) > 0 {
			edited(list, e)
		}
	}
	return list
}

// edited applies a stored edit to the messages of its item.
func edited(list []abi.Message, e lane.Edit) {
	id := "i" + strconv.Itoa(e.Item)
	for j := range list {
		if m := &list[j]; m.ID == id || m.ID == fmt.Sprintf("%s.%d", id, e.Block) {
			m.Content = []abi.ContentBlock{abi.Text(wire.String(e.Value, wire.Whole(e.Value)))}
			return
		}
	}
}

// flat are the messages that the model sees: with a compaction in the place of those that it replaces.
func (x *exchange) flat() []abi.Message {
	sw := x.ln.Swap
	if sw == nil || sw.To > len(x.ln.Messages) {
		return slices.Concat(x.ln.Messages...)
	}
	return slices.Concat(slices.Concat(x.ln.Messages[:sw.From]...), wire.Inserted(x.proto, sw.Item, "summary/"), slices.Concat(x.ln.Messages[sw.To:]...))
}

// userTurn reports whether the request begins a turn of the user: its last message has words of a person.
func (x *exchange) userTurn() bool {
	i := lastWords(x.req)
	return i >= 0 && x.change != lane.Retry && spoken(x.req, i)
}

// lastWords returns the last item that is no system message, -1 where there is none: a client may put one at the end.
func lastWords(r *wire.Request) int {
	for i := range slices.Backward(r.Items) {
		if r.Items[i].Role != wire.System {
			return i
		}
	}
	return -1
}

// spoken reports whether an item has words of a person.
func spoken(r *wire.Request, i int) bool {
	it := &r.Items[i]
	if it.Role != wire.User {
		return false
	}
	for _, b := range it.Blocks {
		if b.Type == wire.TypeText && !written(wire.String(r.Body, b.Value)) {
			return true
		}
	}
	return false
}

// written reports whether a program wrote a text of a user's message.
func written(text string) bool {
	text = strings.TrimSpace(text)
	for _, prefix := range []string{
		"<system-reminder", "<environment_context", "<user_instructions", "<permissions instructions", "# AGENTS.md", standInHead,
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return text == ""
}

func (x *exchange) identity() abi.RunIdentity {
	return abi.RunIdentity{ThreadID: x.ln.ID, RunID: x.ln.Run, AgentID: x.id.agent, ParentThreadID: x.ln.Parent, Adapter: "proxy", SessionID: x.id.session}
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
	changed, err := x.results(ctx, a)
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

// results fires after_tool_execute for each result that is new.
func (x *exchange) results(ctx context.Context, a *attached) (bool, error) {
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
			did, err := x.result(ctx, a, m)
			if changed = changed || did; err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
}

func (x *exchange) result(ctx context.Context, a *attached, m *abi.Message) (bool, error) {
	call := x.call(m.ToolCallID)
	out, err := x.s.cfg.Runtime.Fire(ctx, a.state, phases.Frame{
		Phase: abi.AfterToolExecute, Run: x.identity(), Step: x.ln.Step, Messages: x.flat(), Call: &call,
		Result:          &abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess, Content: m.Content},
		ResultMessageID: m.ID, HasTool: x.hasTool,
	})
	if err != nil {
		return false, err
	}
	changed := x.effects(&out)
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
	for _, t := range x.req.Tools {
		if t.Name == name {
			return true
		}
	}
	return x.hidden[name]
}
