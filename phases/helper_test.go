package phases_test

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

// plug makes a plugin with one hook and three state keys: excl and comm of the
// run, kept of the thread.
func plug(name string, h abi.Hook, answer phasestest.Answer) *phasestest.Scripted {
	if h.Mode == "" {
		h.Mode = abi.ModeTransform
	}
	return &phasestest.Scripted{
		Desc: abi.Description{
			Name: name, Hooks: []abi.Hook{h},
			State: []abi.StateKey{
				{Name: "excl"}, {Name: "comm", Merge: abi.MergeCommutative}, {Name: "kept", Scope: abi.ScopeThread},
			},
		},
		Script: map[abi.Phase]phasestest.Answer{h.Phase: answer},
	}
}

// twice lets a plugin subscribe twice to its phase, the only way for two hooks to
// share a state key.
func twice(p *phasestest.Scripted) *phasestest.Scripted {
	p.Desc.Hooks = append(p.Desc.Hooks, p.Desc.Hooks[0])
	return p
}

func effects(es ...abi.Effect) phasestest.Answer { return phasestest.Reply(abi.Reply{Effects: es}) }

func updates(us ...abi.Update) phasestest.Answer { return phasestest.Reply(abi.Reply{Updates: us}) }

type rig struct {
	*phases.Runtime
	*phasestest.Recorder

	state *phases.State
}

func build(tb testing.TB, cfg phases.Config, plugins ...phases.Plugin) *rig {
	tb.Helper()
	g := &rig{Recorder: &phasestest.Recorder{}}
	cfg.Plugins, cfg.Record = plugins, g.Record
	var ids atomic.Int64
	cfg.NewID = func() string { return fmt.Sprintf("new%d", ids.Add(1)) }
	r, err := phases.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	g.Runtime, g.state = r, r.NewState(nil)
	return g
}

func (g *rig) fire(tb testing.TB, f phases.Frame) phases.Outcome {
	tb.Helper()
	out, err := g.Fire(tb.Context(), g.state, f)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func (g *rig) wantState(tb testing.TB, key string, want any) {
	tb.Helper()
	if got, _ := g.state.Read(key); !reflect.DeepEqual(got, want) {
		tb.Errorf("state %s is %#v, want %#v", key, got, want)
	}
}

// only returns the one record of a plugin.
func (g *rig) only(tb testing.TB, plugin string) phases.Record {
	tb.Helper()
	records := g.Of(plugin)
	if len(records) != 1 {
		tb.Fatalf("%d records of %s, want 1: %+v", len(records), plugin, records)
	}
	return records[0]
}

// step is a frame at before_inference with n user messages m1 to mn.
func step(n int) phases.Frame {
	f := phases.Frame{Phase: abi.BeforeInference, Step: 1, Run: abi.RunIdentity{ThreadID: "t", RunID: "r"}}
	for i := range n {
		f.Messages = append(f.Messages, user("m"+strconv.Itoa(i+1)))
	}
	return f
}

func user(id string) abi.Message {
	return abi.Message{ID: id, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("text of " + id)}}
}

func ids(messages []abi.Message) string {
	s := ""
	for i, m := range messages {
		if i > 0 {
			s += " "
		}
		s += m.ID
	}
	return s
}

func calls(id string, callIDs ...string) abi.Message {
	m := abi.Message{ID: id, Role: abi.RoleAssistant}
	for _, c := range callIDs {
		m.ToolCalls = append(m.ToolCalls, abi.ToolCall{ID: c, Name: "tool"})
	}
	return m
}

func result(id, callID string) abi.Message {
	return abi.Message{ID: id, Role: abi.RoleTool, ToolCallID: callID, Content: []abi.ContentBlock{abi.Text("result of " + callID)}}
}

type ctx = context.Context

func silent(context.Context, *abi.Event) (*abi.Reply, error) { return nil, nil }

func text(s string) []abi.ContentBlock { return []abi.ContentBlock{abi.Text(s)} }
