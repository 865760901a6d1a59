package phases_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/phases/state"
)

// A command at a moment of a run is recorded as what was done then, before the effects
// that it asks for; one that is refused leaves nothing, and the reason.
func TestSubmitAt(t *testing.T) {
	t.Parallel()
	p := worker("p", handle(abi.BeforeInference), nil, answers{"note": note}, answers{"tell": func(context.Context, *abi.Event) (*abi.Reply, error) { return nil, nil }})
	g := build(t, phases.Config{}, p)
	f := phasestest.Frame(abi.AfterToolExecute)
	put := func(key string) phases.Command {
		return phases.Command{
			By: "tool bash", Batch: state.Batch{Updates: []state.Update{{Key: key, Op: abi.OpSet, Value: "x"}}},
			Actions: []abi.Action{do("p/note", 2)}, Effects: []abi.Effect{custom("p/tell", nil)},
		}
	}
	report, err := g.SubmitAt(t.Context(), g.state, f, put("p/excl"))
	if err != nil || report.Effects != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	records := g.Records()
	if len(records) != 2 || records[1].Handler != "p/tell" {
		t.Fatalf("records %+v", records)
	}
	rec := records[0]
	if rec.Plugin != "tool bash" || rec.Phase != abi.AfterToolExecute || rec.CallID != f.Call.ID || len(rec.Applied) != 3 || rec.Applied[0] != (phases.Change{What: "set", Target: "p/excl"}) {
		t.Errorf("record %+v", rec)
	}

	if _, err := g.SubmitAt(t.Context(), g.state, f, put("q/none")); err == nil {
		t.Error("an unknown key was taken")
	}
	many := put("p/excl")
	for range 200 {
		many.Actions = append(many.Actions, many.Actions[0])
	}
	if _, err := g.SubmitAt(t.Context(), g.state, f, many); err == nil || !strings.Contains(err.Error(), "201 actions in one command, at most 32") {
		t.Errorf("error %v", err)
	}
	for _, rec := range g.Records()[2:] {
		if len(rec.Applied) != 0 || len(rec.Refused) != 1 || rec.Err == "" {
			t.Errorf("record of a refusal %+v", rec)
		}
	}
	if n := g.state.Revision(); n != 1 {
		t.Errorf("revision %d", n)
	}
}

// TestKept: what is kept is what an export has, and watchers of a state receive keys.
func TestKept(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, updates(
		abi.Update{Key: "kept", Op: abi.OpSet, Value: 1}, abi.Update{Key: "excl", Op: abi.OpSet, Value: 2}))
	g := build(t, phases.Config{}, p)
	var heard []string
	stop, err := g.state.Watch(func(keys []string) { heard = append(heard, keys...) })
	if err != nil {
		t.Fatal(err)
	}
	g.fire(t, step(1))
	stop()
	g.fire(t, step(1))
	if len(heard) != 2 || heard[0] != "p/excl" || heard[1] != "p/kept" {
		t.Errorf("received %v", heard)
	}
	for key, want := range map[string]bool{"p/kept": true, "p/excl": false, "p/none": false} {
		value, ok := g.state.Kept(key)
		_, exported := g.state.Export()[key]
		if ok != want || exported != want || ok && value != int64(1) {
			t.Errorf("%s: %v, %v, exported %v", key, value, ok, exported)
		}
	}
}
