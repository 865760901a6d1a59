package plugins_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/plugins"
)

// played is everything that can be seen of a thread's runs.
type played struct {
	events  []agent.Event
	results []agent.Result
	log     []abi.Message
	state   map[string]any
	saved   agent.Checkpoint
}

// playRuns has a plugin take part in runs that suspend, continue, are notified of a task and
// end in all ways that the ledger has.
func playRuns(t *testing.T, p phases.Plugin) played {
	t.Helper()
	n := 0
	id := func() string { n++; return fmt.Sprint("id", n) }
	then := time.Unix(1000, 0)
	deferred := 0
	rt, err := phases.New(phases.Config{
		Plugins: []phases.Plugin{p, rival()}, HookTimeout: time.Minute, NewID: id,
		Record: func(r phases.Record) {
			if r.Deferred != "" {
				deferred++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out played
	var calls []abi.ToolCall
	for i := range 6 {
		calls = append(calls, abi.ToolCall{ID: fmt.Sprint("c", i), Name: "ls", Arguments: map[string]any{"n": int64(i)}})
	}
	store := agent.NewMemory()
	a, err := agent.New(agent.Config{
		Profile: agent.Profile{Model: &listed{calls: calls}, Phases: rt, Tools: answersTo("ls")}, NewID: id, Now: func() time.Time { return then }, Checkpoints: store,
		Listen: func(_ context.Context, e agent.Event) {
			e.DurationMS = 0
			out.events = append(out.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(req agent.Request) {
		req.ThreadID = "t"
		r, err := a.Run(t.Context(), req)
		if err != nil {
			t.Logf("a run failed: %v", err)
		}
		out.results = append(out.results, r)
	}
	run(agent.Request{Messages: []abi.Message{{ID: "m0", Role: abi.RoleUser, Content: text("Clean up.")}, {ID: "m1", Role: abi.RoleUser, Content: text("Please.")}}})
	run(agent.Request{Decisions: []agent.Decision{{ID: "d", Target: "t1", Action: agent.ActionResume, Result: "yes"}}})
	if err := a.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: int64(1)}); err != nil {
		t.Fatal(err)
	}
	run(agent.Request{Messages: []abi.Message{{ID: "m2", Role: abi.RoleUser, Content: text("And?")}}})
	run(agent.Request{Messages: []abi.Message{{ID: "m3", Role: abi.RoleUser, Content: text("Thanks.")}}})
	out.log, out.state = a.Thread("t").Messages(), a.Thread("t").State()
	if out.saved, _, err = store.LoadThread(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	out.saved.Run.Active = 0
	if deferred == 0 {
		t.Error("the plugin never collided with another one")
	}
	return out
}

// rival replaces results before the plugin does, which is then called again.
func rival() phases.Plugin {
	return &phasestest.Scripted{
		Desc: abi.Description{Name: "rival", Hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform, Priority: -1}}},
		Script: map[abi.Phase]phasestest.Answer{
			abi.AfterToolExecute: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: text("by the rival")}}}, nil
			},
		},
	}
}

// answersTo is a tool runner of one tool, and has another one that no model calls.
type answersTo string

func (a answersTo) Tools() []abi.Tool {
	return []abi.Tool{{Name: string(a), Kind: abi.ToolRead}, {Name: "rm", Kind: abi.ToolEdit}}
}

func (a answersTo) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{Status: abi.ToolSuccess, Message: fmt.Sprint("module ", call.Arguments)}, nil
}

// TestRunsAreTheSame: a run with the guest and one with the same extension as native
// code are the same, event by event, and leave the same behind.
func TestRunsAreTheSame(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: module("ledger")})
	if err != nil {
		t.Fatal(err)
	}
	one, other := playRuns(t, native{}), playRuns(t, set.Plugins()[0])
	if len(one.events) != len(other.events) {
		t.Errorf("%d events with native code, %d with the guest", len(one.events), len(other.events))
	}
	for i := range min(len(one.events), len(other.events)) {
		if !reflect.DeepEqual(one.events[i], other.events[i]) {
			t.Fatalf("event %d:\n%+v\n%+v", i, one.events[i], other.events[i])
		}
	}
	for what, pair := range map[string][2]any{
		"results": {one.results, other.results}, "log": {one.log, other.log}, "state": {one.state, other.state}, "checkpoint": {one.saved, other.saved},
	} {
		if what == "state" || what == "checkpoint" {
			// The words of errors in dead letters differ: one is a guest's.
			forget(one.state, other.state, one.saved.State.Values, other.saved.State.Values)
		}
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s:\n%+v\n%+v", what, pair[0], pair[1])
		}
	}
	// And the runs are not empty.
	if len(one.events) < 60 || one.results[0].Status != agent.StatusWaiting || len(one.state) < 2 {
		t.Errorf("%d events, results %+v", len(one.events), one.results)
	}
}

func forget(states ...map[string]any) {
	for _, s := range states {
		delete(s, "_runtime/dead_letters")
	}
}
