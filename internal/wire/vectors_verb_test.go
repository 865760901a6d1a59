package wire_test

import "github.com/mortise-dev/mortise/abi"

// verbEvents hold what an event has beyond the conversation: the time, the request, how the
// run ended, a compaction, and what plugins made of a call.
func verbEvents() []vector {
	compaction := abi.Compaction{
		ID: "compaction_1", Policy: "extractive", FromID: "m1", ToID: "m4", Messages: 4, TokensBefore: 120000, RangeTokens: 90000,
		ThresholdTokens: 100000, WindowTokens: 200000, Focus: "the failing test",
	}
	after := compaction
	after.Outcome, after.TokensAfter, after.Summary = abi.CompactionSwapped, 35000, "## Goal"
	after.Survival, after.Lost = new(0.75), []string{"/srv/a.go", "42"}
	failed := abi.Compaction{ID: "compaction_2", Outcome: abi.CompactionRefused, Reason: "too_long", Survival: new(0.0)}
	return []vector{
		named("event.identity", event(abi.RunStart, func(e *abi.Event) {
			e.Run.Origin, e.Run.ParentThreadID, e.Run.SenderID = "agent", "t0", "user-7"
			e.Run.TransportRequestID, e.Run.DispatchIDHint, e.NowMS = "req-9", "d7", 1767225600123
		})),
		named("event.request", event(abi.BeforeInference, func(e *abi.Event) {
			e.Request = &abi.InferenceRequest{
				Model: "model-1", FallbackModels: []string{"model-2"}, Temperature: new(0.25), TopP: new(0.5), MaxTokens: new(int64(4096)),
				ReasoningEffort: new("high"), System: "Answer briefly.",
				Tools: []abi.Tool{{Name: "list", Description: "Lists files.", Kind: abi.ToolRead, Parameters: map[string]any{"type": "object"}}},
			}
		})),
		named("event.rewritten", event(abi.BeforeToolExecute, func(e *abi.Event) {
			e.Call = &abi.ToolCall{ID: "c1", Name: "list", Arguments: map[string]any{"path": "/srv"}, IdempotencyKey: "m3/c1"}
			e.RewrittenBy = []string{"jsonfix", "paths"}
		})),
		named("event.before_compaction", event(abi.BeforeCompaction, func(e *abi.Event) { e.Compaction = &compaction })),
		named("event.after_compaction", event(abi.AfterCompaction, func(e *abi.Event) { e.Compaction = &after })),
		named("event.compaction_refused", event(abi.AfterCompaction, func(e *abi.Event) { e.Compaction = &failed })),
		named("event.end", event(abi.RunEnd, func(e *abi.Event) {
			e.End = &abi.RunEnding{
				Termination: abi.TerminationStopped, Code: "token_budget", Detail: "used 2 of 1 tokens", Error: "none", Steps: 3,
				Usage: &abi.Usage{TotalTokens: 70000}, Cost: 0.125, DurationMS: 65536,
			}
		})),
		named("event.end_natural", event(abi.RunEnd, func(e *abi.Event) { e.End = &abi.RunEnding{Termination: abi.TerminationNatural} })),
	}
}

// verbReplies hold one effect each.
func verbReplies() []vector {
	return []vector{
		effect(abi.Effect{Type: abi.EffectRewriteCall, Arguments: map[string]any{"path": "/srv", "depth": int64(2)}, Note: "a relative path"}),
		effect(abi.Effect{Type: abi.EffectReplaceResponse, Message: &conversation()[2]}),
		effect(abi.Effect{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{
			Status: abi.ToolError, Content: []abi.ContentBlock{abi.Text("[removed]")}, Data: map[string]any{"n": int64(1)}, Message: "removed",
		}}),
		effect(abi.Effect{Type: abi.EffectVetoCompaction, Detail: "a test is running"}),
		effect(abi.Effect{Type: abi.EffectFocusCompaction, Focus: "the failing test"}),
		effect(abi.Effect{Type: abi.EffectNotify, EventType: "budget", Payload: map[string]any{"left": int64(3)}}),
	}
}
