package plugins_test

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/abi"
)

// native is the guest of testdata/ledger as native code.
type native struct{}

func (native) Describe() abi.Description { return description() }

func (native) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) { return onPhase(e) }

func description() abi.Description {
	d := abi.Description{
		Name: "ledger", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1},
		State: []abi.StateKey{
			{Name: "steps", Scope: abi.ScopeThread},
			{Name: "total", Scope: abi.ScopeThread, Merge: abi.MergeCommutative},
			{Name: "fields", Merge: abi.MergeCommutative},
			{Name: "list"},
		},
		Actions: []abi.Handler{{Name: "tally"}, {Name: "mask", Mode: abi.ModeTransform}},
		Effects: []abi.Handler{{Name: "tell", Public: true}},
	}
	for _, p := range []abi.Phase{
		abi.RunStart, abi.StepStart, abi.BeforeInference, abi.AfterInference, abi.ToolGate,
		abi.BeforeToolExecute, abi.AfterToolExecute, abi.StepEnd, abi.RunEnd,
	} {
		h := abi.Hook{Phase: p, Mode: abi.ModeTransform, Messages: abi.ViewDelta, OnFailure: abi.FailIgnore}
		if p == abi.ToolGate || p == abi.StepEnd {
			h.Mode = abi.ModeGate
		}
		d.Hooks = append(d.Hooks, h)
	}
	return d
}

func onPhase(e *abi.Event) (*abi.Reply, error) {
	switch {
	case e.Action != nil:
		return act(e)
	case e.Effect != nil:
		if e.Effect.Payload == "bad" {
			return nil, errors.New("cannot detect that")
		}
		return nil, nil
	}
	switch e.Phase {
	case abi.RunStart:
		return &abi.Reply{
			Updates: []abi.Update{{Key: "list", Op: abi.OpSet, Value: []any{"a", int64(1), 0.5, true, nil, []byte{1, 2}}}},
			Effects: []abi.Effect{{Type: abi.EffectAppendMessages, Messages: []abi.Message{{Role: abi.RoleUser, Content: text("a reminder"), Pinned: true}}}},
			Actions: []abi.Action{{Phase: abi.StepEnd, Key: "tally", Payload: int64(2)}},
		}, nil
	case abi.StepStart:
		return &abi.Reply{
			Updates: []abi.Update{{Key: "fields", Op: abi.OpMerge, Value: map[string]any{"seen": int64(len(e.Messages)), "gone": "soon"}}},
			Effects: []abi.Effect{{Type: abi.EffectEmit, EventType: "started", Payload: map[string]any{"total": e.MessagesTotal, "notices": len(e.Notices)}}},
		}, nil
	case abi.BeforeInference:
		return beforeInference(e), nil
	case abi.AfterInference:
		return &abi.Reply{
			Updates: []abi.Update{{Key: "total", Op: abi.OpAdd, Value: e.Response.Usage.TotalTokens}, {Key: "list", Op: abi.OpAppend, Value: []any{e.Response.Model}}},
			Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "tell", Payload: "used"}},
		}, nil
	default:
		return toolPhases(e)
	}
}

func beforeInference(e *abi.Event) *abi.Reply {
	model, tokens, heat := "small", int64(100), 0.25
	return &abi.Reply{
		Effects: []abi.Effect{
			{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "date", Content: text("Monday"), CooldownTurns: 2}},
			{Type: abi.EffectExcludeTools, Tools: []string{"rm"}},
			{Type: abi.EffectIncludeTools, Tools: []string{"ls", "rm"}},
			{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{Model: &model, MaxTokens: &tokens, Temperature: &heat}},
			{Type: abi.EffectPinMessage, MessageID: "m1", Note: "the question"},
			{Type: abi.EffectRequestCompaction, Focus: "the module"},
		},
		Actions: []abi.Action{
			{Phase: abi.BeforeInference, Key: "tally", Payload: int64(3)},
			{Phase: abi.BeforeInference, Key: "tally", Payload: "not a number"},
			{Phase: abi.BeforeInference, Key: "mask", Payload: e.Run.RunID},
		},
	}
}

func toolPhases(e *abi.Event) (*abi.Reply, error) {
	switch e.Phase {
	case abi.ToolGate:
		return gate(e)
	case abi.BeforeToolExecute:
		return &abi.Reply{Updates: []abi.Update{{Key: "fields", Op: abi.OpRemove, Value: []any{"gone", "never"}}}}, nil
	case abi.AfterToolExecute:
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: text("module [hidden]")}}}, nil
	case abi.StepEnd:
		steps, _ := e.State["steps"].(int64)
		r := &abi.Reply{
			Updates: []abi.Update{{Key: "steps", Op: abi.OpSet, Value: steps + 1}},
			Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "ledger/tell", Payload: "bad"}},
		}
		if steps > 2 {
			r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectStop, Code: "enough", Detail: "three steps"})
		}
		return r, nil
	default:
		// Refused: undeclared, and beyond the mode.
		return &abi.Reply{
			Updates: []abi.Update{{Key: "undeclared", Op: abi.OpAdd, Value: int64(1)}},
			Effects: []abi.Effect{{Type: abi.EffectStop, Code: "late"}},
		}, nil
	}
}

func gate(e *abi.Event) (*abi.Reply, error) {
	decide := func(d abi.GateDecision) (*abi.Reply, error) { return &abi.Reply{Gate: &d}, nil }
	switch e.Step {
	case 1:
		return decide(abi.GateDecision{Action: abi.GateSuspend, Reason: "ask", Ticket: &abi.SuspendTicket{ID: "t1", Parameters: e.Call.Arguments}})
	case 2:
		return decide(abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Data: map[string]any{"n": int64(1)}}})
	case 3:
		return nil, errors.New("no opinion today")
	default:
		return decide(abi.GateDecision{Action: abi.GateBlock, Reason: "no"})
	}
}

func act(e *abi.Event) (*abi.Reply, error) {
	if e.Action.Key == "mask" {
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectMaskMessage, MessageID: "m0", Text: "[by " + e.Action.By + "]"}}}, nil
	}
	n, ok := e.Action.Payload.(int64)
	if !ok {
		return nil, errors.New("malformed payload")
	}
	r := &abi.Reply{Updates: []abi.Update{{Key: "total", Op: abi.OpAdd, Value: n}}}
	if n > 1 {
		r.Actions = []abi.Action{{Phase: e.Phase, Key: "tally", Payload: n - 1}}
	}
	return r, nil
}

func text(s string) []abi.ContentBlock { return []abi.ContentBlock{abi.Text(s)} }
