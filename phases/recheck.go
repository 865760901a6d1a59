package phases

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// CanRewrite reports whether a hook may change the arguments of a call.
func (r *Runtime) CanRewrite() bool {
	return r.Transforms(abi.ToolGate) || r.Transforms(abi.BeforeToolExecute)
}

// Transforms reports whether a hook at a phase may do more than observe.
func (r *Runtime) Transforms(p abi.Phase) bool {
	return slices.ContainsFunc(r.hooks[p], func(h *hook) bool { return h.Mode != abi.ModeObserve })
}

// Recheck has the gate judge a call once more, with the arguments that plugins gave it. It
// calls the hooks at tool_gate whose mode is gate, and only their decisions count: their
// updates, effects and actions were applied when the gate was fired, so here they are
// dropped. A hook that fails blocks by its failure policy, as ever. A hook that wants to
// stop the run, or to rewrite the call again although another plugin did so last, cannot be
// taken for one that agrees: it blocks.
//
// The frame is that of tool_gate, and RewrittenBy must name the plugins.
func (r *Runtime) Recheck(ctx context.Context, st *State, f Frame) (Outcome, error) {
	f.Phase = abi.ToolGate
	gates := slices.DeleteFunc(slices.Clone(r.hooks[f.Phase]), func(h *hook) bool { return h.Mode != abi.ModeGate })
	out := Outcome{Messages: f.Messages}
	if err := ctx.Err(); err != nil {
		return out, fmt.Errorf("phases: %s: %w", f.Phase, err)
	}
	if len(gates) == 0 {
		return out, nil
	}
	p, err := r.enter(ctx, st, f)
	if err != nil {
		return out, err
	}
	defer p.leave()
	p.recheck = true
	if err = p.invoke(ctx, p.prepare(gates)); err == nil {
		p.final = p.first
		for _, c := range p.final {
			p.judge(c)
		}
	}
	return p.end(ctx, err)
}

// judge takes the decision of a reply, and nothing else.
func (p *pass) judge(c *call) {
	proposal := p.vet(c)
	if proposal == nil {
		return
	}
	c.gate = proposal.gate
	reason := p.disagrees(c, proposal)
	if reason != "" && (c.gate == nil || strength(c.gate.Action) < strength(abi.GateBlock)) {
		c.gate = &abi.GateDecision{Action: abi.GateBlock, Reason: reason}
	}
}

// disagrees returns why a reply without a block is no consent.
func (p *pass) disagrees(c *call, proposal *proposal) string {
	name := c.hook.plugin.name
	for i := range proposal.effects {
		switch e := &proposal.effects[i]; e.Type {
		case abi.EffectStop:
			return fmt.Sprintf("plugin %s asks to stop the run: %s", name, oneLine(e.Code+" "+e.Detail, p.r.cfg.Limits.TextBytes))
		case abi.EffectRewriteCall:
			by := p.frame.RewrittenBy
			if (len(by) == 0 || by[len(by)-1] != name) && !p.sameArguments(e.Arguments) {
				return fmt.Sprintf("plugin %s would rewrite the call again, after %s did", name, join(by))
			}
		default:
		}
	}
	return ""
}

// sameArguments reports whether the call has these arguments already.
func (p *pass) sameArguments(arguments any) bool {
	now, _, err := state.Clone(p.frame.Call.Arguments, p.r.cfg.Limits.ReplyBytes)
	return err == nil && reflect.DeepEqual(now, arguments)
}
