package phases_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// Which effects a mode allows.
func TestModes(t *testing.T) {
	t.Parallel()
	all := []struct {
		effect abi.Effect
		needs  int
	}{
		{abi.Effect{Type: abi.EffectEmit, EventType: "x"}, 0},
		{abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("")}}, 1},
		{abi.Effect{Type: abi.EffectReplaceMessage, MessageID: "m1", Content: text("x")}, 1},
		{abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m1"}, 1},
		{abi.Effect{Type: abi.EffectPinMessage, MessageID: "m1"}, 1},
		{abi.Effect{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "k", Content: text("x")}}, 1},
		{abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"x"}}, 1},
		{abi.Effect{Type: abi.EffectIncludeTools, Tools: []string{"x"}}, 1},
		{abi.Effect{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{}}, 1},
		{abi.Effect{Type: abi.EffectRequestCompaction}, 1},
		{abi.Effect{Type: abi.EffectStop, Code: "x"}, 2},
	}
	for rank, mode := range []abi.Mode{abi.ModeObserve, abi.ModeTransform, abi.ModeGate} {
		for _, test := range all {
			t.Run(string(mode)+" "+string(test.effect.Type), func(t *testing.T) {
				t.Parallel()
				p := plug("p", abi.Hook{Phase: abi.BeforeInference, Mode: mode, OnFailure: abi.FailIgnore}, effects(test.effect))
				g := build(t, phases.Config{}, p)
				g.fire(t, step(1))
				rec := g.only(t, "p")
				if allowed := len(rec.Applied) == 1 && rec.Err == ""; allowed != (rank >= test.needs) {
					t.Errorf("allowed %v: %+v", allowed, rec)
				}
				if rank < test.needs && !strings.Contains(rec.Refused[0].Reason, "the hook's mode is "+string(mode)) {
					t.Errorf("refused %+v", rec.Refused)
				}
			})
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	one := func(e abi.Effect) abi.Reply { return abi.Reply{Effects: []abi.Effect{e}} }
	override := func(o abi.InferenceOverride) abi.Reply {
		return one(abi.Effect{Type: abi.EffectOverrideInference, Override: &o})
	}
	context := func(c abi.ContextMessage) abi.Reply {
		return one(abi.Effect{Type: abi.EffectAddContext, Context: &c})
	}
	decide := func(d abi.GateDecision) abi.Reply { return abi.Reply{Gate: &d} }
	long := strings.Repeat("x", 300)
	tests := map[string]struct {
		reply abi.Reply
		phase abi.Phase
		want  string
	}{
		"undeclared key":     {reply: abi.Reply{Updates: []abi.Update{{Key: "none", Op: abi.OpSet}}}, want: "does not declare this state key"},
		"key of another":     {reply: abi.Reply{Updates: []abi.Update{{Key: "q/excl", Op: abi.OpSet}}}, want: "does not declare this state key"},
		"full key":           {reply: abi.Reply{Updates: []abi.Update{{Key: "p/excl", Op: abi.OpSet}}}, want: "does not declare this state key"},
		"many updates":       {reply: abi.Reply{Updates: make([]abi.Update, 5)}, want: "5 are more than the 4"},
		"many effects":       {reply: abi.Reply{Effects: make([]abi.Effect, 5)}, want: "5 are more than the 4"},
		"unknown effect":     {reply: one(abi.Effect{Type: "explode"}), want: "type of effect is not known"},
		"long note":          {reply: one(abi.Effect{Type: abi.EffectEmit, EventType: "x", Note: long}), want: "note has 300 bytes, more than the 200"},
		"event with escape":  {reply: one(abi.Effect{Type: abi.EffectEmit, EventType: "x\x1b[2J"}), want: "event_type has control characters"},
		"nameless event":     {reply: one(abi.Effect{Type: abi.EffectEmit}), want: "event_type is missing"},
		"large payload":      {reply: one(abi.Effect{Type: abi.EffectEmit, EventType: "x", Payload: strings.Repeat("x", 600)}), want: "larger than the 500 bytes"},
		"payload type":       {reply: one(abi.Effect{Type: abi.EffectEmit, EventType: "x", Payload: make(chan int)}), want: "type chan int cannot be stored"},
		"large content":      {reply: one(abi.Effect{Type: abi.EffectReplaceMessage, MessageID: "m1", Content: text(strings.Repeat("x", 600))}), want: "more than the 500"},
		"large mask":         {reply: one(abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m1", Text: strings.Repeat("x", 600)}), want: "more than the 500"},
		"no message id":      {reply: one(abi.Effect{Type: abi.EffectPinMessage}), want: "message_id is missing"},
		"many messages":      {reply: one(abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("a"), user("b"), user("c")}}), want: "3 messages are more than the 2"},
		"large metadata":     {reply: one(abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{{Role: abi.RoleUser, Content: text("x"), Metadata: map[string]any{"k": strings.Repeat("x", 600)}}}}), want: "metadata: the value is larger"},
		"no tools":           {reply: one(abi.Effect{Type: abi.EffectExcludeTools}), want: "tools is missing"},
		"nameless tool":      {reply: one(abi.Effect{Type: abi.EffectIncludeTools, Tools: []string{""}}), want: "tools: a name is missing"},
		"no context":         {reply: one(abi.Effect{Type: abi.EffectAddContext}), want: "context is missing"},
		"context key":        {reply: context(abi.ContextMessage{Content: text("x")}), want: "key must have 1 to 128 bytes"},
		"context role":       {reply: context(abi.ContextMessage{Key: "k", Role: abi.RoleTool, Content: text("x")}), want: `role "tool"`},
		"context target":     {reply: context(abi.ContextMessage{Key: "k", Target: "moon", Content: text("x")}), want: `target "moon"`},
		"context content":    {reply: context(abi.ContextMessage{Key: "k"}), want: "context: content is missing"},
		"context cooldown":   {reply: context(abi.ContextMessage{Key: "k", Content: text("x"), CooldownTurns: -1}), want: "cooldown_turns is -1"},
		"no override":        {reply: one(abi.Effect{Type: abi.EffectOverrideInference}), want: "override is missing"},
		"blank model":        {reply: override(abi.InferenceOverride{Model: new("")}), want: "model or reasoning_effort is missing"},
		"hot":                {reply: override(abi.InferenceOverride{Temperature: new(2.5)}), want: "temperature 2.5"},
		"temperature nan":    {reply: override(abi.InferenceOverride{Temperature: new(math.NaN())}), want: "temperature NaN"},
		"top_p":              {reply: override(abi.InferenceOverride{TopP: new(-0.5)}), want: "top_p -0.5"},
		"max_tokens":         {reply: override(abi.InferenceOverride{MaxTokens: new(int64(0))}), want: "max_tokens is 0"},
		"stop without code":  {reply: one(abi.Effect{Type: abi.EffectStop}), want: "code is missing"},
		"long focus":         {reply: one(abi.Effect{Type: abi.EffectRequestCompaction, Focus: long}), want: "focus has 300 bytes"},
		"gate elsewhere":     {reply: decide(abi.GateDecision{Action: abi.GateAllow}), want: "a gate decides at tool_gate only, not at before_inference"},
		"unknown action":     {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: "shrug"}), want: `action "shrug"`},
		"long reason":        {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: abi.GateBlock, Reason: long}), want: "reason has 300 bytes"},
		"no ticket":          {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: abi.GateSuspend}), want: "suspend needs a ticket"},
		"ticket id":          {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{}}), want: "ticket: id is missing"},
		"ticket mode":        {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: "1", Mode: "never"}}), want: `mode "never"`},
		"no result":          {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: abi.GateSetResult}), want: "set_result needs a result"},
		"result status":      {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{}}), want: `status ""`},
		"result data":        {phase: abi.ToolGate, reply: decide(abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{Status: abi.ToolError, Data: struct{}{}}}), want: "result: data"},
		"everything at once": {reply: abi.Reply{Updates: fill(4, abi.Update{Key: "excl", Op: abi.OpSet, Value: strings.Repeat("x", 400)})}, want: "larger than"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := step(1)
			if test.phase != "" {
				f.Phase = test.phase
			}
			reply := test.reply
			reply.Updates = append(slices.Clip(reply.Updates), abi.Update{Key: "comm", Op: abi.OpAdd, Value: 1})
			if strings.HasPrefix(name, "many updates") {
				reply = test.reply
			}
			limits := phases.Limits{Updates: 5, Effects: 4, AppendedMessages: 2, ReplyBytes: 1500, MessageBytes: 500, TextBytes: 200}
			if len(test.reply.Updates) == 5 {
				limits.Updates = 4
			}
			p := plug("p", abi.Hook{Phase: f.Phase, Mode: abi.ModeGate, OnFailure: abi.FailIgnore}, func(ctx ctx, e *abi.Event) (*abi.Reply, error) { return &reply, nil })
			g := build(t, phases.Config{Limits: limits}, p, plug("q", abi.Hook{Phase: f.Phase}, silent))
			out := g.fire(t, f)
			rec := g.only(t, "p")
			if len(rec.Refused) == 0 || !strings.Contains(rec.Refused[0].Reason, test.want) {
				t.Errorf("refused %+v, want a reason with %q", rec.Refused, test.want)
			}
			// Nothing is half applied: the good update alongside is refused as well.
			if g.state.Revision() != 0 || len(rec.Applied) > 0 || out.Gate != nil || out.Stop != nil {
				t.Errorf("applied %+v", rec.Applied)
			}
		})
	}
}

func fill[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// All parts of a reply that are wrong are reported at once.
func TestEachRefusalIsRecorded(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference, Mode: abi.ModeObserve}, func(ctx, *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{
			Updates: []abi.Update{{Key: "none"}, {Key: "excl", Op: abi.OpAdd, Value: 1}, {Key: "comm", Op: "double"}},
			Effects: []abi.Effect{{Type: abi.EffectStop, Code: "x"}, {Type: "bad\x1b[31m"}},
			Gate:    &abi.GateDecision{Action: abi.GateBlock},
		}, nil
	})
	g := build(t, phases.Config{}, p)
	g.fire(t, step(1))
	var what []string
	for _, r := range g.only(t, "p").Refused {
		what = append(what, r.What)
	}
	if got, want := strings.Join(what, "; "), `update 0 "none"; update 2 "comm"; effect 0 stop; effect 1 bad [31m; gate`; got != want {
		t.Errorf("refused %s, want %s", got, want)
	}
	g.wantState(t, "p/excl", nil)
}
