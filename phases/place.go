package phases

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// hookPhases are the phases that a hook may subscribe to.
func hookPhases() []abi.Phase { return slices.Concat(abi.Phases(), abi.CompactionPhases()) }

func phaseNames(phases []abi.Phase) string {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// place is what a hook needs to ask for an effect: a mode, and a phase at which the
// effect can do something.
type place struct {
	mode   abi.Mode
	phases []abi.Phase
	// refusal is the error at another phase, which it names; one that lists the phases
	// when empty.
	refusal string
}

// placeOf returns the place of a type of effect.
func placeOf(t abi.EffectType) (place, bool) {
	switch t {
	case abi.EffectEmit, abi.EffectCustom, abi.EffectNotify:
		return place{mode: abi.ModeObserve, phases: hookPhases()}, true
	case abi.EffectReplaceMessage, abi.EffectMaskMessage, abi.EffectRequestCompaction:
		return place{mode: abi.ModeTransform, phases: abi.Phases()}, true
	case abi.EffectPinMessage:
		return place{mode: abi.ModeTransform, phases: append(abi.Phases(), abi.BeforeCompaction)}, true
	case abi.EffectAppendMessages:
		return place{
			mode: abi.ModeTransform, phases: []abi.Phase{abi.RunStart, abi.StepStart, abi.BeforeInference, abi.StepEnd, abi.RunEnd},
			refusal: "messages cannot be appended at %s; append at step_end",
		}, true
	case abi.EffectAddContext:
		return place{mode: abi.ModeTransform, phases: append(beforeInference(), abi.AfterCompaction), refusal: noInference}, true
	case abi.EffectExcludeTools, abi.EffectIncludeTools, abi.EffectOverrideInference:
		return place{mode: abi.ModeTransform, phases: beforeInference(), refusal: noInference}, true
	case abi.EffectStop:
		return place{mode: abi.ModeGate, phases: beforeInference(), refusal: "it has no effect at %s: no step of the run is left that it could end"}, true
	case abi.EffectRewriteCall:
		return place{mode: abi.ModeTransform, phases: []abi.Phase{abi.ToolGate, abi.BeforeToolExecute}}, true
	case abi.EffectReplaceResponse:
		return place{mode: abi.ModeTransform, phases: []abi.Phase{abi.AfterInference}}, true
	case abi.EffectReplaceResult:
		return place{mode: abi.ModeTransform, phases: []abi.Phase{abi.AfterToolExecute}}, true
	case abi.EffectVetoCompaction:
		return place{mode: abi.ModeGate, phases: []abi.Phase{abi.BeforeCompaction}}, true
	case abi.EffectFocusCompaction:
		return place{mode: abi.ModeTransform, phases: []abi.Phase{abi.BeforeCompaction}}, true
	default:
		return place{}, false
	}
}

const noInference = "it has no effect at %s: it is for an inference of the same run, and none follows"

// beforeInference are the phases of a run that an inference of the run may follow.
func beforeInference() []abi.Phase {
	return slices.DeleteFunc(abi.Phases(), func(p abi.Phase) bool { return p == abi.RunEnd })
}

// allowed checks the effect against the mode of the hook and the phase.
func (v *vetter) allowed(t abi.EffectType) error {
	if v.hook.kind == activator {
		return errors.New("a plugin that is activated may only update state")
	}
	needs, known := placeOf(t)
	switch {
	case !known:
		return errors.New("this type of effect is not known")
	case rank(v.hook.Mode) < rank(needs.mode):
		return fmt.Errorf("the hook's mode is %s, and this needs %s", v.hook.Mode, needs.mode)
	case slices.Contains(needs.phases, v.frame.Phase):
		return nil
	}
	if needs.refusal != "" {
		return fmt.Errorf(needs.refusal, v.frame.Phase)
	}
	return fmt.Errorf("it has no effect at %s, only at %s", v.frame.Phase, phaseNames(needs.phases))
}

func rank(m abi.Mode) int {
	switch m {
	case abi.ModeTransform:
		return 1
	case abi.ModeGate:
		return 2
	default:
		return 0
	}
}
