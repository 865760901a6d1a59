package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/schema"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// maxHeld is how much of one call is held.
const maxHeld = 8 << 20

// verdict is what becomes of a call. A call that is removed has a result.
type verdict struct {
	args    []byte // other arguments, nil for those of the model
	removed bool
	result  string
	failed  bool
}

// canGate reports whether a plugin may decide about calls, if only by failing. For others no call is held: see observeCalls.
func (x *exchange) canGate() bool {
	rt := x.s.cfg.Runtime
	return rt != nil && x.why == "" && (rt.CanRewrite() || x.s.closedAt(abi.ToolGate, abi.BeforeToolExecute) != "")
}

// judge decides about a call.
func (x *exchange) judge(ctx context.Context, o *wire.Out) (v verdict) {
	if o.Server {
		return verdict{}
	}
	if x.ln != nil {
		x.ln.Lock()
		defer x.ln.Unlock()
	}
	call := o.Call()
	if x.s.cfg.Runtime != nil && (x.gates || x.hidden[o.Name]) {
		if v = x.gate(ctx, o, &call); v.removed {
			return v
		}
	}
	if x.hidden[o.Name] {
		v = x.execute(ctx, call)
	}
	return v
}

// frame is what the phases of an answer have in common.
func (x *exchange) frame(p abi.Phase) phases.Frame {
	f := phases.Frame{Phase: p, Run: x.identity(), HasTool: x.hasTool, Messages: x.said}
	if x.ln != nil {
		f.Step, f.Messages = x.ln.Step, x.flat()
	}
	return f
}

// callFrame is that of a call.
func (x *exchange) callFrame(p abi.Phase, call *abi.ToolCall) phases.Frame {
	f := x.frame(p)
	f.Call, f.CheckArguments = call, x.checker(call.Name)
	return f
}

// state is that of the lane's plugins; a request without a lane has one of its own.
func (x *exchange) state() *phases.State {
	if x.ln == nil {
		return x.s.cfg.Runtime.NewState(nil)
	}
	return x.attach().state
}

// ambiguous is why clients may take other arguments out of a call than plugins see, or empty: some repair what is no JSON, as pi does, and some,
// written in Go, take a name in any case.
func (x *exchange) ambiguous(o *wire.Out, call *abi.ToolCall, rewritten bool) string {
	if o.Custom {
		return ""
	}
	if !rewritten && len(o.Args) > 0 && (!json.Valid(o.Args) || wire.Repeats(o.Args)) {
		return "its arguments are no JSON, or have a field twice"
	}
	args, _ := call.Arguments.(map[string]any)
	names := x.parameters(call.Name)
	for key := range args {
		if !slices.Contains(names, key) && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, key) }) {
			return fmt.Sprintf("its argument %.40q is spelled in another case", key)
		}
	}
	return ""
}

// parameters are the names of a tool's arguments, as far as the client says them.
func (x *exchange) parameters(tool string) (names []string) {
	if x.req == nil {
		return nil
	}
	body := x.req.Body
	for _, t := range x.req.Tools {
		if t.Name == tool && t.Schema.Exists() {
			_ = wire.Object(body, wire.Field(body, t.Schema, "properties"), func(key []byte, _, _ wire.Span) error {
				names = append(names, string(key))
				return nil
			})
		}
	}
	return names
}

// gate asks the plugins.
func (x *exchange) gate(ctx context.Context, o *wire.Out, call *abi.ToolCall) verdict {
	rt, st := x.s.cfg.Runtime, x.state()
	var by []string
	for _, p := range []abi.Phase{abi.ToolGate, abi.BeforeToolExecute} {
		f := x.callFrame(p, call)
		f.RewrittenBy = by
		out, err := rt.Fire(ctx, st, f)
		if err != nil {
			return blocked("a plugin failed: " + err.Error())
		}
		if v, no := refusal(out.Gate); no {
			return v
		}
		if out.Stop != nil {
			return blocked("plugin " + out.Stop.By + " stops the run: " + out.Stop.Detail)
		}
		if out.Rewrite == nil {
			continue
		}
		call.Arguments, by = out.Rewrite.Arguments, append(by, out.Rewrite.By...)
		f = x.callFrame(abi.ToolGate, call)
		f.RewrittenBy = by
		if out, err = rt.Recheck(ctx, st, f); err != nil {
			return blocked("a plugin failed: " + err.Error())
		}
		if v, no := refusal(out.Gate); no {
			return v
		}
	}
	if why := x.ambiguous(o, call, len(by) > 0); why != "" {
		return blocked(why)
	}
	if len(by) == 0 {
		return verdict{}
	}
	if o.Item {
		return blocked("a plugin changed arguments that cannot be changed here: " + strings.Join(by, ", "))
	}
	x.s.stats.rewritten.Add(1)
	if text, ok := call.Arguments.(string); ok && o.Custom {
		return verdict{args: []byte(text)}
	}
	return verdict{args: o.Rewritten(call.Arguments)}
}

// refusal returns what a decision of the gate makes of a call.
func refusal(g *phases.GateOutcome) (verdict, bool) {
	if g == nil {
		return verdict{}, false
	}
	switch d := &g.Decision; d.Action {
	case abi.GateBlock:
		return blocked(cmp.Or(d.Reason, "plugin "+g.By+" blocks the call")), true
	case abi.GateSuspend:
		return blocked(cmp.Or(d.Reason, "the call needs a decision that cannot be asked for here")), true
	case abi.GateSetResult:
		if d.Result == nil {
			return blocked("plugin " + g.By + " gave no result"), true
		}
		m := abi.Message{Content: phases.ResultContent(d.Result)}
		return verdict{removed: true, result: m.Text(), failed: d.Result.Status == abi.ToolError}, true
	case abi.GateAllow:
	}
	return verdict{}, false
}

func blocked(reason string) verdict {
	return verdict{removed: true, result: "The call was not executed: " + reason, failed: true}
}

// checker checks arguments by the schema of a tool of the client.
func (x *exchange) checker(name string) func(any) error {
	if x.req == nil {
		return nil
	}
	for _, t := range x.req.Tools {
		if t.Name != name || !t.Schema.Exists() {
			continue
		}
		return func(v any) error {
			if s, err := schema.Compile(wire.Value(t.Schema.Of(x.req.Body))); err == nil {
				return s.Check(v)
			}
			return nil // a schema that is wrong is the client's own matter
		}
	}
	return nil
}
