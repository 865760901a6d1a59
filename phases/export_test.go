package phases

import "github.com/mortise-dev/mortise/abi"

// Place returns what a hook needs to ask for an effect: a mode and a phase.
func Place(t abi.EffectType) (mode abi.Mode, phases []abi.Phase, known bool) {
	p, known := placeOf(t)
	return p.mode, p.phases, known
}
