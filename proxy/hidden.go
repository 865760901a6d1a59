package proxy

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// offer adds hidden tools: those of plugins with the first request of a lane, and recall at a swap. It reports whether
// there are new ones.
func (x *exchange) offer() bool {
	changed := false
	if x.ln.Calls == 0 && x.s.cfg.Tools != nil && x.req.TakesTools() && len(x.ln.Hidden) == 0 {
		for _, t := range x.s.cfg.Tools.Tools() {
			changed = x.hide(t) || changed
		}
	}
	if sw := x.ln.Swap; sw != nil && len(sw.Handles) > 0 && x.s.cfg.Store != nil { // hide adds it once
		changed = x.hide(recall()) || changed
	}
	for _, raw := range x.ln.Hidden {
		if x.hidden == nil {
			x.hidden = map[string]bool{}
		}
		x.hidden[hiddenName(raw)] = true
	}
	return changed
}

func hiddenName(raw []byte) string {
	if name := wire.Text(raw, "name"); name != "" {
		return name
	}
	return wire.Text(raw, "function", "name")
}

// hide adds a tool, unless the client has one of that name or the lane has it already.
func (x *exchange) hide(t abi.Tool) bool {
	for _, have := range x.req.Tools {
		if have.Name == t.Name {
			return false
		}
	}
	for _, have := range x.ln.Hidden {
		if hiddenName(have) == t.Name {
			return false
		}
	}
	x.ln.Hidden = append(x.ln.Hidden, wire.ToolJSON(x.proto, t))
	return true
}

// execute runs a hidden tool.
func (x *exchange) execute(ctx context.Context, call abi.ToolCall) verdict {
	x.s.stats.hidden.Add(1)
	if call.Name == recallTool {
		return x.recall(ctx, call)
	}
	f := x.callFrame(abi.AfterToolExecute, &call)
	rt, st := x.s.cfg.Runtime, x.state()
	inv := rt.Invoke(st, f)
	res, err := x.s.cfg.Tools.CallTool(inv.Context(ctx), call)
	if err != nil {
		return verdict{removed: true, result: "The tool failed: " + err.Error(), failed: true}
	}
	f.Result, f.ResultMessageID = &res, "hidden-"+call.ID
	if _, err := rt.Settle(ctx, st, f, inv); err != nil {
		return verdict{removed: true, result: "The tool's reply was refused: " + err.Error(), failed: true}
	}
	if out, err := rt.Fire(ctx, st, f); err == nil && out.Result != nil {
		res = *out.Result
	} else if err != nil {
		return verdict{removed: true, result: "The result was refused: " + err.Error(), failed: true}
	}
	m := abi.Message{Content: phases.ResultContent(&res)}
	return verdict{removed: true, result: m.Text(), failed: res.Status == abi.ToolError}
}
