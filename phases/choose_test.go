package phases_test

import (
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// The record names the wish that does not count.
func TestOverriddenWishesAreRecorded(t *testing.T) {
	t.Parallel()
	model, other, heat := "small", "large", 0.5
	wish := func(name string, es ...abi.Effect) phases.Plugin {
		return plug(name, abi.Hook{Phase: abi.BeforeInference, Mode: abi.ModeGate}, effects(es...))
	}
	override := func(o abi.InferenceOverride) abi.Effect {
		return abi.Effect{Type: abi.EffectOverrideInference, Override: &o}
	}
	g := build(
		t, phases.Config{},
		wish("a", abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("x"), user("y")}},
			abi.Effect{Type: abi.EffectRequestCompaction}, override(abi.InferenceOverride{Model: &model})),
		wish("b", abi.Effect{Type: abi.EffectStop, Code: "one"}, abi.Effect{Type: abi.EffectStop, Code: "two"},
			abi.Effect{Type: abi.EffectRequestCompaction, Focus: "the bug"}),
		wish("c", abi.Effect{Type: abi.EffectStop, Code: "three"}, override(abi.InferenceOverride{Temperature: &heat})),
		wish("d", override(abi.InferenceOverride{Model: &other})),
	)
	out := g.fire(t, step(2))
	if out.Stop == nil || out.Stop.Code != "one" || out.Stop.By != "b" || out.Compact == nil || out.Compact.Focus != "the bug" || *out.Override.Model != other {
		t.Errorf("outcome %+v", out)
	}
	want := map[string][]bool{"a": {false, false, true, true}, "b": {false, true, false}, "c": {true, false}, "d": {false}}
	for name, marks := range want {
		rec := g.only(t, name)
		if len(rec.Applied) != len(marks) {
			t.Fatalf("%s: applied %+v", name, rec.Applied)
		}
		for i, mark := range marks {
			if rec.Applied[i].Overridden != mark {
				t.Errorf("%s: %+v, want overridden %v", name, rec.Applied[i], mark)
			}
		}
		if rec.MessagesTotal != 2 || rec.MessagesSent != 0 {
			t.Errorf("%s saw %d of %d messages", name, rec.MessagesSent, rec.MessagesTotal)
		}
	}
}
