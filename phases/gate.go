package phases

import "github.com/mortise-dev/mortise/abi"

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
