package phases_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

func gate(d abi.GateDecision) phasestest.Answer { return phasestest.Reply(abi.Reply{Gate: &d}) }

func TestGatePriority(t *testing.T) {
	t.Parallel()
	decisions := map[string]phasestest.Answer{
		"none":  silent,
		"allow": gate(abi.GateDecision{Action: abi.GateAllow}),
		"set":   gate(abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, CallID: "forged", Message: "cached"}}),
		"wait":  gate(abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: "t1"}}),
		"block": gate(abi.GateDecision{Action: abi.GateBlock, Reason: "no"}),
		"fails": phasestest.Fail(errors.New("out of\norder")),
	}
	tests := []struct {
		hooks      string // in firing order
		by         int    // index of the one that wins, -1 for none
		overridden string
	}{
		{"none", -1, ""},
		{"none none", -1, ""},
		{"allow", 0, ""},
		{"none allow", 1, ""},
		{"allow set", 1, "0"},
		{"set allow", 0, "1"},
		{"set wait", 1, "0"},
		{"allow set wait block", 3, "0 1 2"},
		{"wait block block set", 1, "0 2 3"},
		{"wait wait", 0, "1"},
		{"allow fails", 1, "0"},
		{"fails block", 0, "1"},
		{"block fails", 0, "1"},
	}
	for _, test := range tests {
		t.Run(test.hooks, func(t *testing.T) {
			t.Parallel()
			var plugins []phases.Plugin
			names := strings.Fields(test.hooks)
			for i, name := range names {
				plugins = append(plugins, plug(fmt.Sprintf("p%d", i), abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeGate}, decisions[name]))
			}
			g := build(t, phases.Config{}, plugins...)
			out := g.fire(t, phasestest.Frame(abi.ToolGate))
			if test.by < 0 {
				if out.Gate != nil {
					t.Fatalf("gate %+v, want no opinion", out.Gate)
				}
				return
			}
			if want := fmt.Sprintf("p%d", test.by); out.Gate == nil || out.Gate.By != want {
				t.Fatalf("gate %+v, want that of %s", out.Gate, want)
			}
			var overridden []string
			for i, rec := range g.Records() {
				if rec.Overridden {
					overridden = append(overridden, fmt.Sprint(i))
				}
				if rec.CallID != "call_1" || rec.ToolName != "read_file" {
					t.Errorf("the record is about call %q of %q", rec.CallID, rec.ToolName)
				}
				if (rec.Gate == nil) != (names[i] == "none") {
					t.Errorf("record %d holds the decision %+v", i, rec.Gate)
				}
			}
			if got := strings.Join(overridden, " "); got != test.overridden {
				t.Errorf("overridden are %q, want %q", got, test.overridden)
			}
			switch names[test.by] {
			case "fails":
				if d := out.Gate.Decision; d.Action != abi.GateBlock || d.Reason != fmt.Sprintf("plugin p%d failed: out of order", test.by) {
					t.Errorf("decision %+v", d)
				}
			case "set":
				if r := out.Gate.Decision.Result; r.CallID != "call_1" || r.ToolName != "read_file" || r.Message != "cached" {
					t.Errorf("result %+v", r)
				}
			}
		})
	}
}

// At the tool gate the policy decides what a failure means, whatever the mode.
func TestGateFailure(t *testing.T) {
	t.Parallel()
	panics := func(context.Context, *abi.Event) (*abi.Reply, error) { panic("at the gate") }
	tests := map[string]struct {
		hook    abi.Hook
		answer  phasestest.Answer
		blocked bool
	}{
		"gate by default":        {abi.Hook{Mode: abi.ModeGate}, panics, true},
		"gate, bad reply":        {abi.Hook{Mode: abi.ModeGate}, gate(abi.GateDecision{Action: "perhaps"}), true},
		"gate, half bad reply":   {abi.Hook{Mode: abi.ModeGate}, phasestest.Reply(abi.Reply{Gate: &abi.GateDecision{Action: abi.GateAllow}, Updates: []abi.Update{{Key: "none"}}}), true},
		"gate that may fail":     {abi.Hook{Mode: abi.ModeGate, OnFailure: abi.FailIgnore}, panics, false},
		"observer by default":    {abi.Hook{Mode: abi.ModeObserve}, panics, false},
		"transformer by default": {abi.Hook{Mode: abi.ModeTransform}, panics, false},
		"observer that must not": {abi.Hook{Mode: abi.ModeObserve, OnFailure: abi.FailRun}, panics, true},
		"observer that decides":  {abi.Hook{Mode: abi.ModeObserve}, gate(abi.GateDecision{Action: abi.GateBlock}), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.hook.Phase = abi.ToolGate
			g := build(t, phases.Config{}, plug("p", test.hook, test.answer))
			out := g.fire(t, phasestest.Frame(abi.ToolGate))
			if blocked := out.Gate != nil && out.Gate.Decision.Action == abi.GateBlock; blocked != test.blocked {
				t.Errorf("gate %+v, want blocked %v", out.Gate, test.blocked)
			}
			if rec := g.only(t, "p"); rec.Err == "" || len(rec.Applied) != 0 {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

// A failing gate blocks the call, and the other hooks' work stays.
func TestGateFailureKeepsOthers(t *testing.T) {
	t.Parallel()
	g := build(t, phases.Config{},
		plug("a", abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeGate}, phasestest.Fail(errors.New("broken"))),
		plug("b", abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeObserve}, count))
	out := g.fire(t, phasestest.Frame(abi.ToolGate))
	g.wantState(t, "b/excl", int64(1))
	if want := (&phases.GateOutcome{By: "a", Decision: abi.GateDecision{Action: abi.GateBlock, Reason: "plugin a failed: broken"}}); !reflect.DeepEqual(out.Gate, want) {
		t.Errorf("gate %+v", out.Gate)
	}
}

// A policy decides by who asks, for which tool and in which mode; what it says is the
// gate's decision.
func TestGateAsPolicy(t *testing.T) {
	t.Parallel()
	policy := func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		d := abi.GateDecision{Action: abi.GateAllow}
		switch {
		case e.Run.Mode == abi.RunScheduled && e.Call.Kind == abi.ToolEdit:
			d = abi.GateDecision{Action: abi.GateBlock, Reason: "nobody watches " + e.Run.DispatchID}
		case e.Run.Adapter == "a2a":
			d = abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: "ask", Parameters: e.Call.Arguments}}
		}
		return &abi.Reply{Gate: &d}, nil
	}
	tests := map[string]struct {
		run  abi.RunIdentity
		kind abi.ToolKind
		want abi.GateAction
	}{
		"foreground edit": {abi.RunIdentity{}, abi.ToolEdit, abi.GateAllow},
		"scheduled edit":  {abi.RunIdentity{Mode: abi.RunScheduled, DispatchID: "d7"}, abi.ToolEdit, abi.GateBlock},
		"scheduled read":  {abi.RunIdentity{Mode: abi.RunScheduled}, abi.ToolRead, abi.GateAllow},
		"from an agent":   {abi.RunIdentity{Adapter: "a2a"}, abi.ToolRead, abi.GateSuspend},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := build(t, phases.Config{}, plug("policy", abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeGate}, policy))
			f := phasestest.Frame(abi.ToolGate)
			call := *f.Call
			call.Kind, f.Call, f.Run = test.kind, &call, test.run
			out := g.fire(t, f)
			if out.Gate == nil || out.Gate.Decision.Action != test.want || out.Gate.By != "policy" {
				t.Fatalf("gate %+v, want %s", out.Gate, test.want)
			}
			if test.want == abi.GateBlock && out.Gate.Decision.Reason != "nobody watches d7" {
				t.Errorf("reason %q", out.Gate.Decision.Reason)
			}
		})
	}
}
