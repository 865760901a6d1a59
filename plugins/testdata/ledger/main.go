// Command ledger is a guest that uses everything that a plugin may do. The tests of
// package plugins hold the same extension as native code, and compare.
package main

import (
	"errors"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase})
}

func main() {}

func description() mortise.Description {
	d := mortise.Description{
		Name: "ledger", Version: "1.0.0", ABI: mortise.VersionRange{Min: 1, Max: 1},
		State: []mortise.StateKey{
			{Name: "steps", Scope: mortise.ScopeThread}, {Name: "total", Scope: mortise.ScopeThread, Merge: mortise.MergeCommutative},
			{Name: "fields", Merge: mortise.MergeCommutative}, {Name: "list"},
		},
		Actions: []mortise.Handler{{Name: "tally"}, {Name: "mask", Mode: mortise.ModeTransform}},
		Effects: []mortise.Handler{{Name: "tell", Public: true}},
	}
	for _, p := range []mortise.Phase{
		mortise.RunStart, mortise.StepStart, mortise.BeforeInference, mortise.AfterInference, mortise.ToolGate,
		mortise.BeforeToolExecute, mortise.AfterToolExecute, mortise.StepEnd, mortise.RunEnd,
	} {
		h := mortise.Hook{Phase: p, Mode: mortise.ModeTransform, Messages: mortise.ViewDelta, OnFailure: mortise.FailIgnore}
		if p == mortise.ToolGate || p == mortise.StepEnd {
			h.Mode = mortise.ModeGate
		}
		d.Hooks = append(d.Hooks, h)
	}
	return d
}

func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	switch {
	case e.Action != nil:
		return act(e)
	case e.Effect != nil:
		if e.Effect.Payload == "bad" {
			return nil, errors.New("cannot tell that")
		}
		return nil, nil
	}
	switch e.Phase {
	case mortise.RunStart:
		return &mortise.Reply{
			Updates: []mortise.Update{{Key: "list", Op: mortise.OpSet, Value: []any{"a", int64(1), 0.5, true, nil, []byte{1, 2}}}},
			Effects: []mortise.Effect{{Type: mortise.EffectAppendMessages, Messages: []mortise.Message{{Role: mortise.RoleUser, Content: text("a reminder"), Pinned: true}}}},
			Actions: []mortise.Action{{Phase: mortise.StepEnd, Key: "tally", Payload: int64(2)}},
		}, nil
	case mortise.StepStart:
		return &mortise.Reply{
			Updates: []mortise.Update{{Key: "fields", Op: mortise.OpMerge, Value: map[string]any{"seen": int64(len(e.Messages)), "gone": "soon"}}},
			Effects: []mortise.Effect{{Type: mortise.EffectEmit, EventType: "started", Payload: map[string]any{"total": e.MessagesTotal, "notices": len(e.Notices)}}},
		}, nil
	case mortise.BeforeInference:
		return beforeInference(e), nil
	case mortise.AfterInference:
		return &mortise.Reply{
			Updates: []mortise.Update{{Key: "total", Op: mortise.OpAdd, Value: e.Response.Usage.TotalTokens}, {Key: "list", Op: mortise.OpAppend, Value: []any{e.Response.Model}}},
			Effects: []mortise.Effect{{Type: mortise.EffectCustom, Key: "tell", Payload: "used"}},
		}, nil
	default:
		return toolPhases(e)
	}
}

func beforeInference(e *mortise.Event) *mortise.Reply {
	model, tokens, heat := "small", int64(100), 0.25
	return &mortise.Reply{
		Effects: []mortise.Effect{
			{Type: mortise.EffectAddContext, Context: &mortise.ContextMessage{Key: "date", Content: text("Monday"), CooldownTurns: 2}},
			{Type: mortise.EffectExcludeTools, Tools: []string{"rm"}},
			{Type: mortise.EffectIncludeTools, Tools: []string{"ls", "rm"}},
			{Type: mortise.EffectOverrideInference, Override: &mortise.InferenceOverride{Model: &model, MaxTokens: &tokens, Temperature: &heat}},
			{Type: mortise.EffectPinMessage, MessageID: "m1", Note: "the question"},
			{Type: mortise.EffectRequestCompaction, Focus: "the module"},
		},
		Actions: []mortise.Action{
			{Phase: mortise.BeforeInference, Key: "tally", Payload: int64(3)},
			{Phase: mortise.BeforeInference, Key: "tally", Payload: "not a number"},
			{Phase: mortise.BeforeInference, Key: "mask", Payload: e.Run.RunID},
		},
	}
}

func toolPhases(e *mortise.Event) (*mortise.Reply, error) {
	switch e.Phase {
	case mortise.ToolGate:
		return gate(e)
	case mortise.BeforeToolExecute:
		return &mortise.Reply{Updates: []mortise.Update{{Key: "fields", Op: mortise.OpRemove, Value: []any{"gone", "never"}}}}, nil
	case mortise.AfterToolExecute:
		return &mortise.Reply{Effects: []mortise.Effect{{Type: mortise.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: text("module [hidden]")}}}, nil
	case mortise.StepEnd:
		steps, _ := e.State["steps"].(int64)
		r := &mortise.Reply{
			Updates: []mortise.Update{{Key: "steps", Op: mortise.OpSet, Value: steps + 1}},
			Effects: []mortise.Effect{{Type: mortise.EffectCustom, Key: "ledger/tell", Payload: "bad"}},
		}
		if steps > 2 {
			r.Effects = append(r.Effects, mortise.Effect{Type: mortise.EffectStop, Code: "enough", Detail: "three steps"})
		}
		return r, nil
	default:
		// Refused: undeclared, and beyond the mode.
		return &mortise.Reply{
			Updates: []mortise.Update{{Key: "undeclared", Op: mortise.OpAdd, Value: int64(1)}},
			Effects: []mortise.Effect{{Type: mortise.EffectStop, Code: "late"}},
		}, nil
	}
}

func gate(e *mortise.Event) (*mortise.Reply, error) {
	decide := func(d mortise.GateDecision) (*mortise.Reply, error) { return &mortise.Reply{Gate: &d}, nil }
	switch e.Step {
	case 1:
		return decide(mortise.GateDecision{Action: mortise.GateSuspend, Reason: "ask", Ticket: &mortise.SuspendTicket{ID: "t1", Parameters: e.Call.Arguments}})
	case 2:
		return decide(mortise.GateDecision{Action: mortise.GateSetResult, Result: &mortise.ToolResult{Status: mortise.ToolSuccess, Data: map[string]any{"n": int64(1)}}})
	case 3:
		return nil, errors.New("no opinion today")
	default:
		return decide(mortise.GateDecision{Action: mortise.GateBlock, Reason: "no"})
	}
}

func act(e *mortise.Event) (*mortise.Reply, error) {
	if e.Action.Key == "mask" {
		return &mortise.Reply{Effects: []mortise.Effect{{Type: mortise.EffectMaskMessage, MessageID: "m0", Text: "[by " + e.Action.By + "]"}}}, nil
	}
	n, ok := e.Action.Payload.(int64)
	if !ok {
		return nil, errors.New("malformed payload")
	}
	r := &mortise.Reply{Updates: []mortise.Update{{Key: "total", Op: mortise.OpAdd, Value: n}}}
	if n > 1 {
		r.Actions = []mortise.Action{{Phase: e.Phase, Key: "tally", Payload: n - 1}}
	}
	return r, nil
}

func text(s string) []mortise.ContentBlock { return []mortise.ContentBlock{mortise.Text(s)} }
