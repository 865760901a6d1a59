package phases_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

func around(p abi.Phase) phases.Frame {
	f := step(2)
	f.Phase, f.Compaction = p, &abi.Compaction{ID: "c1", FromID: "m1", ToID: "m2", Messages: 2}
	return f
}

func focus(text string) abi.Effect { return abi.Effect{Type: abi.EffectFocusCompaction, Focus: text} }

func veto(detail string) abi.Effect {
	return abi.Effect{Type: abi.EffectVetoCompaction, Detail: detail}
}

// The phases around a compaction fire as others do: hooks see it, the first veto in firing
// order counts, and what all of them want to keep in view is joined.
func TestPhasesAroundACompaction(t *testing.T) {
	t.Parallel()
	gate := abi.Hook{Phase: abi.BeforeCompaction, Mode: abi.ModeGate}
	first := plug("b", abi.Hook{Phase: gate.Phase, Mode: gate.Mode, Priority: -1}, effects(focus("paths"), veto("not now")))
	second := plug("a", gate, effects(veto("never"), focus("names"), abi.Effect{Type: abi.EffectPinMessage, MessageID: "m1"},
		abi.Effect{Type: abi.EffectEmit, EventType: "seen"}))
	g := build(t, phases.Config{}, first, second)
	out := g.fire(t, around(abi.BeforeCompaction))
	if out.Veto == nil || *out.Veto != (phases.Veto{Detail: "not now", By: "b"}) || out.Focus != "paths\nnames" {
		t.Errorf("veto %+v, focus %q", out.Veto, out.Focus)
	}
	if !out.Messages[0].Pinned || len(out.Emitted) != 1 {
		t.Errorf("outcome %+v", out)
	}
	if e := first.Events()[0]; e.Compaction == nil || e.Compaction.ID != "c1" || e.Phase != abi.BeforeCompaction {
		t.Errorf("event %+v", e)
	}
	overridden := func(plugin string) []bool {
		var all []bool
		for _, c := range g.only(t, plugin).Applied {
			if c.What == string(abi.EffectVetoCompaction) {
				all = append(all, c.Overridden)
			}
		}
		return all
	}
	if !slices.Equal(overridden("b"), []bool{false}) || !slices.Equal(overridden("a"), []bool{true}) {
		t.Errorf("records %+v", g.Records())
	}
	if g.fire(t, around(abi.AfterCompaction)).Veto != nil || len(g.Order(abi.BeforeCompaction)) != 2 {
		t.Error("the hooks fired at another phase")
	}
	if slices.Contains(abi.Phases(), abi.BeforeCompaction) {
		t.Error("a run has ten phases")
	}
}

// What all plugins want to keep in view is bounded, and the one that goes beyond is refused.
func TestFocusIsBounded(t *testing.T) {
	t.Parallel()
	h := abi.Hook{Phase: abi.BeforeCompaction}
	long := strings.Repeat("x", 60)
	g := build(t, phases.Config{Limits: phases.Limits{TextBytes: 100}}, plug("a", h, effects(focus(long))), plug("b", h, effects(focus(long))),
		plug("c", h, effects(focus(""))), plug("d", h, effects(focus("short"))))
	if out := g.fire(t, around(h.Phase)); out.Focus != long+"\nshort" {
		t.Errorf("focus %q", out.Focus)
	}
	if rec := g.only(t, "b"); len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, "together have more than the 100 bytes") {
		t.Errorf("record %+v", rec)
	}
	if rec := g.only(t, "c"); len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, "focus is missing") {
		t.Errorf("record %+v", rec)
	}
}

// An effect that can have no effect at a phase is refused there, with a reason that names
// where it can.
func TestEffectsOutOfPlace(t *testing.T) {
	t.Parallel()
	run := abi.Phases()
	but := func(p abi.Phase) []abi.Phase {
		return slices.DeleteFunc(abi.Phases(), func(o abi.Phase) bool { return o == p })
	}
	inferences := but(abi.RunEnd)
	tests := []struct {
		effect abi.Effect
		at     []abi.Phase
		want   string
	}{
		{abi.Effect{Type: abi.EffectEmit, EventType: "x"}, append(run, abi.CompactionPhases()...), ""},
		{abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m1"}, run, "only at run_start, step_start"},
		{abi.Effect{Type: abi.EffectPinMessage, MessageID: "m1"}, append(run, abi.BeforeCompaction), "only at run_start"},
		{abi.Effect{Type: abi.EffectRequestCompaction}, run, "only at run_start"},
		{abi.Effect{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "k", Content: text("x")}}, append(inferences, abi.AfterCompaction), "an inference of the same run, and none follows"},
		{abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"t"}}, inferences, "an inference of the same run, and none follows"},
		{abi.Effect{Type: abi.EffectIncludeTools}, inferences, "an inference of the same run, and none follows"},
		{abi.Effect{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{}}, inferences, "an inference of the same run, and none follows"},
		{abi.Effect{Type: abi.EffectStop, Code: "x"}, inferences, "no step of the run is left"},
		{veto("x"), []abi.Phase{abi.BeforeCompaction}, "only at before_compaction"},
		{focus("x"), []abi.Phase{abi.BeforeCompaction}, "only at before_compaction"},
	}
	for _, test := range tests {
		for _, p := range append(abi.Phases(), abi.CompactionPhases()...) {
			g := build(t, phases.Config{}, plug("p", abi.Hook{Phase: p, Mode: abi.ModeGate, OnFailure: abi.FailIgnore}, effects(test.effect)))
			f := phasestest.Frame(p)
			g.fire(t, f)
			rec := g.only(t, "p")
			switch {
			case slices.Contains(test.at, p):
				if len(rec.Refused) > 0 {
					t.Errorf("%s at %s: %+v", test.effect.Type, p, rec.Refused)
				}
			case len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, test.want) || !strings.Contains(rec.Refused[0].Reason, string(p)):
				t.Errorf("%s at %s: %+v", test.effect.Type, p, rec)
			}
		}
	}
}

// An unknown phase of a hook is refused with those that there are.
func TestUnknownPhaseListsThePhases(t *testing.T) {
	t.Parallel()
	_, err := phases.New(phases.Config{Plugins: []phases.Plugin{plug("p", abi.Hook{Phase: "before_tool"}, silent)}})
	if err == nil || !strings.Contains(err.Error(), `phase "before_tool" is not one of run_start, `) || !strings.Contains(err.Error(), "run_end, before_compaction, after_compaction") {
		t.Errorf("error %v", err)
	}
}
