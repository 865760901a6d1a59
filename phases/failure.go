package phases

import (
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// refuse drops a reply.
func (p *pass) refuse(c *call, refused []Refusal) {
	c.refused = refused
	c.err = fmt.Errorf("%w: %s: %s", ErrRefused, refused[0].What, refused[0].Reason)
	if n := len(refused) - 1; n > 0 {
		c.err = fmt.Errorf("%w (and %d more)", c.err, n)
	}
	p.fail(c)
}

// fail does what the failure policy of the hook says.
func (p *pass) fail(c *call) {
	if c.attempt > 0 {
		c.quarantined = c.hook.failed(&p.r.cfg.Limits, p.r.cfg.Now())
	}
	name := c.hook.plugin.name
	switch {
	case c.hook.OnFailure != abi.FailRun:
		p.r.cfg.Logger.Warn("hook failed", "plugin", name, "phase", string(p.frame.Phase), "run_id", p.frame.Run.RunID,
			"quarantined", c.quarantined, "error", oneLine(c.err.Error(), p.r.cfg.Limits.TextBytes))
	case p.frame.Phase == abi.ToolGate:
		reason := fmt.Sprintf("plugin %s failed: %v", name, c.err)
		c.gate = &abi.GateDecision{Action: abi.GateBlock, Reason: oneLine(reason, p.r.cfg.Limits.TextBytes)}
	default:
		p.fatal = append(p.fatal, &HookError{Plugin: name, Phase: p.frame.Phase, Err: c.err})
	}
}

// decide takes the strongest decision, among equals the first, and marks the
// others.
func decide(calls []*call) *GateOutcome {
	var best *call
	for _, c := range calls {
		if c.gate == nil {
			continue
		}
		switch {
		case best == nil:
			best = c
		case strength(c.gate.Action) > strength(best.gate.Action):
			best.overridden = true
			best = c
		default:
			c.overridden = true
		}
	}
	if best == nil {
		return nil
	}
	return &GateOutcome{Decision: *best.gate, By: best.hook.plugin.name}
}

func strength(a abi.GateAction) int {
	switch a {
	case abi.GateBlock:
		return 3
	case abi.GateSuspend:
		return 2
	case abi.GateSetResult:
		return 1
	default:
		return 0
	}
}
