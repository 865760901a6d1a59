package wire_test

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// vector is a golden value. Its name starts with the type that SDKs decode.
type vector struct {
	name  string
	value any // pointer to a type of the contract
	// packedOnly values change on the way through JSON: bytes become text, and
	// floats without a fraction integers.
	packedOnly bool
}

func vectors() []vector {
	return slices.Concat(eventVectors(), verbEvents(), replyVectors(), verbReplies(), compactionVectors(), otherVectors())
}

func conversation() []abi.Message {
	return []abi.Message{
		{ID: "m1", Role: abi.RoleSystem, Content: []abi.ContentBlock{abi.Text("Answer briefly.")}, Pinned: true},
		{ID: "m2", Role: abi.RoleUser, Content: []abi.ContentBlock{
			abi.Text("Which file is the largest? Größe zählt: 大きい 🪚"),
			{Type: abi.BlockImage, MediaType: "image/png", Data: "iVBORw0KGgo=", Title: "tree"},
			{Type: abi.BlockDocument, URL: "https://example.com/list.pdf"},
		}},
		{
			ID: "m3", Role: abi.RoleAssistant,
			Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "List first.", Signature: "c2ln"}},
			ToolCalls: []abi.ToolCall{{
				ID: "c1", Name: "list", Kind: abi.ToolRead,
				Arguments: map[string]any{"path": "/srv", "depth": int64(2), "hidden": false, "ratio": 0.5, "only": []any{"a", nil, int64(-1)}},
			}, {ID: "c2", Name: "odd", Arguments: "{not json"}},
		},
		{ID: "m4", Role: abi.RoleTool, ToolCallID: "c1", Content: []abi.ContentBlock{abi.Text(strings.Repeat("line\n", 60))}},
		{
			ID: "m5", Role: abi.RoleUser, Visibility: abi.VisibilityInternal,
			Metadata: map[string]any{"origin": map[string]any{"task": "bg_1", "attempt": int64(3)}},
		},
	}
}

func event(phase abi.Phase, change func(*abi.Event)) vector {
	e := &abi.Event{ABI: abi.Version, Phase: phase, Run: abi.RunIdentity{ThreadID: "t1", RunID: "r1"}, Step: 1, MessagesTotal: 5}
	if change != nil {
		change(e)
	}
	return vector{name: "event." + string(phase), value: e}
}

func eventVectors() []vector {
	call := &abi.ToolCall{ID: "c1", Name: "list", Kind: abi.ToolRead, Arguments: map[string]any{}}
	return []vector{
		event(abi.RunStart, func(e *abi.Event) {
			e.Step = 0
			e.Run.ParentRunID, e.Run.AgentID = "r0", "planner"
			e.Run.DispatchID, e.Run.SessionID, e.Run.Mode, e.Run.Adapter = "d1", "s1", abi.RunScheduled, "a2a"
			e.Config = map[string]any{"limit": int64(300), "words": []any{}, "nested": map[string]any{"on": true}}
		}),
		event(abi.StepStart, func(e *abi.Event) {
			e.Notices = []abi.Notice{
				{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: map[string]any{"files": int64(70000)}},
				{Kind: abi.NoticeFailed, TaskID: "bg_2", Error: "no such file", Housekeeping: true},
				{Kind: abi.NoticeCustom, EventType: "progress", Payload: false},
				{Kind: abi.NoticeMessages, Messages: conversation()[:1]},
			}
		}),
		event(abi.BeforeInference, func(e *abi.Event) {
			e.Messages = conversation()
			e.MessagesFrom = 0
			e.State = map[string]any{"count": int64(0), "seen": []any{"m1", "m2"}, "mean": -0.25, "last": "", "none": nil}
		}),
		event(abi.AfterInference, func(e *abi.Event) {
			e.Response = &abi.Response{
				Model: "model-1", Message: conversation()[2], StopReason: abi.StopToolUse,
				Usage: &abi.Usage{PromptTokens: 131072, CompletionTokens: 255, TotalTokens: 131327, CacheReadTokens: 4294967296, ThinkingTokens: 12},
			}
		}),
		event(abi.ToolGate, func(e *abi.Event) { e.Call = call }),
		event(abi.BeforeToolExecute, func(e *abi.Event) { e.Call = call; e.Messages = conversation()[4:]; e.MessagesFrom = 4 }),
		event(abi.AfterToolExecute, func(e *abi.Event) {
			e.Call = call
			e.Result = &abi.ToolResult{CallID: "c1", ToolName: "list", Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("a\nb")}, Data: int64(0)}
			e.ResultMessageID = "m6"
		}),
		event(abi.StepEnd, nil),
		named("event.action", event(abi.StepEnd, func(e *abi.Event) {
			e.Action = &abi.Action{ID: 7, By: "guard", Phase: abi.StepEnd, Key: "report", Payload: map[string]any{"lines": int64(3)}}
		})),
		named("event.effect", event(abi.StepEnd, func(e *abi.Event) {
			e.Effect = &abi.Effect{Type: abi.EffectCustom, Key: "notify", Payload: "done"}
		})),
		event(abi.RunEnd, func(e *abi.Event) { e.Response = &abi.Response{Error: "overloaded"} }),
	}
}

func named(name string, v vector) vector {
	v.name = name
	return v
}

func effect(e abi.Effect) vector {
	return vector{name: "reply." + string(e.Type), value: &abi.Reply{Effects: []abi.Effect{e}}}
}

func gate(d abi.GateDecision) vector {
	return vector{name: "reply.gate_" + string(d.Action), value: &abi.Reply{Gate: &d}}
}

func replyVectors() []vector {
	sixteen := map[string]any{}
	for _, r := range "abcdefghijklmnop" {
		sixteen[string(r)] = int64(r)
	}
	return []vector{
		{name: "reply.no_opinion", value: &abi.Reply{}},
		{name: "reply.updates", value: &abi.Reply{Updates: []abi.Update{
			{Key: "zero", Op: abi.OpSet, Value: int64(0)},
			{Key: "no", Op: abi.OpSet, Value: false},
			{Key: "empty", Op: abi.OpSet, Value: ""},
			{Key: "nothing", Op: abi.OpSet},
			{Key: "fields", Op: abi.OpMerge, Value: sixteen},
			{Key: "list", Op: abi.OpAppend, Value: []any{"x", int64(-33), 1.5}},
			{Key: "n", Op: abi.OpAdd, Value: int64(-1)},
			{Key: "fields", Op: abi.OpRemove, Value: []any{"a"}},
		}}},
		{name: "reply.integers", value: &abi.Reply{Updates: []abi.Update{{Key: "all", Op: abi.OpSet, Value: []any{
			int64(0), int64(127), int64(128), int64(255), int64(256), int64(65535), int64(65536), int64(4294967295), int64(4294967296),
			int64(9223372036854775807), int64(-1), int64(-32), int64(-33), int64(-128), int64(-129), int64(-32768), int64(-32769),
			int64(-2147483648), int64(-2147483649), int64(-9223372036854775808),
		}}}}},
		{name: "reply.lengths", value: &abi.Reply{Updates: []abi.Update{{Key: "all", Op: abi.OpSet, Value: []any{
			strings.Repeat("s", 31), strings.Repeat("s", 32), strings.Repeat("s", 255), strings.Repeat("s", 256),
			make([]any, 15), make([]any, 16),
			map[string]any{},
		}}}}},
		{name: "reply.binary", packedOnly: true, value: &abi.Reply{Updates: []abi.Update{
			{Key: "bytes", Op: abi.OpSet, Value: []byte{0, 1, 0xff}},
			{Key: "empty", Op: abi.OpSet, Value: []byte{}},
			{Key: "floats", Op: abi.OpSet, Value: []any{0.0, 3.0, -1e300}},
		}}},
		effect(abi.Effect{Type: abi.EffectAppendMessages, Messages: conversation()[:2], Note: "a reminder"}),
		effect(abi.Effect{Type: abi.EffectReplaceMessage, MessageID: "m4", Content: []abi.ContentBlock{abi.Text("cut")}}),
		effect(abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m4", Text: "[300 bytes masked]"}),
		effect(abi.Effect{Type: abi.EffectPinMessage, MessageID: "m2"}),
		effect(abi.Effect{Type: abi.EffectAddContext, Context: &abi.ContextMessage{
			Key: "date", Role: abi.RoleSystem, Content: []abi.ContentBlock{abi.Text("It is Monday.")},
			Target: abi.TargetSuffixSystem, CooldownTurns: 3, Persistent: true, Priority: -5,
		}}),
		effect(abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"shell", "http"}}),
		effect(abi.Effect{Type: abi.EffectIncludeTools, Tools: []string{"list"}}),
		effect(abi.Effect{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{
			Model: new("model-2"), FallbackModels: []string{"model-3"}, Temperature: new(0.25), TopP: new(0.5), MaxTokens: new(int64(0)), ReasoningEffort: new(""),
		}}),
		effect(abi.Effect{Type: abi.EffectStop, Code: "done", Detail: "Nothing is left to do."}),
		effect(abi.Effect{Type: abi.EffectRequestCompaction, Focus: "the failing test"}),
		effect(abi.Effect{Type: abi.EffectEmit, EventType: "cost", Payload: map[string]any{"cents": 12.5}}),
		effect(abi.Effect{Type: abi.EffectCustom, Key: "pager/notify", Payload: []any{"on call", int64(2)}}),
		{name: "reply.actions", value: &abi.Reply{Actions: []abi.Action{
			{Phase: abi.StepEnd, Key: "report", Payload: map[string]any{"lines": int64(3)}}, {Phase: abi.RunEnd, Key: "pager/page"},
		}}},
		gate(abi.GateDecision{Action: abi.GateAllow}),
		gate(abi.GateDecision{Action: abi.GateBlock, Reason: "writes outside of the project"}),
		gate(abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{
			ID: "s1", Action: "approve", Message: "Delete 3 files?", Mode: abi.ResumePassDecision,
			Parameters: map[string]any{"files": []any{"a", "b", "c"}}, ResponseSchema: map[string]any{"type": "boolean"},
		}}),
		gate(abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{CallID: "c1", Status: abi.ToolError, Message: "cached", Data: []any{}}}),
	}
}

func compactionVectors() []vector {
	return []vector{
		{name: "summarize_request.minimal", value: &abi.SummarizeRequest{ABI: 1, ThreadID: "t1", BudgetTokens: 1}},
		{name: "summarize_request.full", value: &abi.SummarizeRequest{
			ABI: 1, ThreadID: "t1", Policy: "extractive", Messages: conversation(), PreviousSummary: new(""), BudgetTokens: 2000,
			Focus: "the failing test", ReadFiles: []string{"a.go", "b.go"}, ModifiedFiles: []string{"b.go"}, LiveTasks: []string{"bg_1: index"},
			Config: map[string]any{"keep": int64(3)},
		}},
		{name: "summarize_request.ledger", value: &abi.SummarizeRequest{ABI: 1, ThreadID: "t1", Policy: "ledger", BudgetTokens: 2000, Ledger: fullLedger()}},
		{name: "summary.minimal", value: &abi.Summary{Text: "Nothing happened."}},
		{name: "summary.full", value: &abi.Summary{Text: "## Goal\nFind the largest file.", FromID: "m1", ToID: "m5", Policy: "extractive", Unverified: true}},
		{name: "admit_request.minimal", value: &abi.AdmitRequest{ABI: 1, ThreadID: "t1", NowMS: 1767225600000}},
		{name: "admit_request.full", value: &abi.AdmitRequest{
			ABI: 1, ThreadID: "t1", Policy: "quota", NowMS: 1767225600000, TokensBefore: new(int64(0)), RangeTokens: 90000,
			ThresholdTokens: 100000, WindowTokens: 200000, Pending: true, AttemptCount: 2, MaxAttempts: 3, CooldownMS: 60000, CooldownRemainingMS: 1,
			Signals: abi.Signals{
				Memory:   &abi.MemorySignal{AvailableBytes: new(int64(8589934592)), RequiredHeadroomBytes: 268435456, Pressure: true},
				Provider: &abi.ProviderSignal{P95LatencyMS: new(int64(900)), MaxP95LatencyMS: new(int64(2000)), ErrorRatePerMille: new(int64(0)), MaxErrorRatePerMille: new(int64(50)), Stale: true, Degraded: true},
				Queue:    &abi.QueueSignal{QueuedRequests: 4, MaxQueuedRequests: 0, Saturated: true},
			},
			Config:    []any{"strict"},
			Requested: true, LastStartMS: 1767225590000, Failures: 2, BackoffRemainingMS: 1,
			Cache: &abi.CacheUse{AtMS: 1767225599000, PromptTokens: 120000, ReadTokens: 100000, WrittenTokens: 5000, Model: "claude-opus-5", ReadPerMille: 100, WritePerMille: 1250},
			Cost:  &abi.CompactionCost{SummaryTokens: 4000, RewriteTokens: 34000, SavedTokens: 86000, AfterTokens: 21000, RewriteMicros: 91800, SavedMicros: 64500},
		}},
		{name: "decision.allowed", value: &abi.Decision{Allowed: true, Reason: abi.ReasonAllowed}},
		{name: "decision.refused", value: &abi.Decision{Reason: abi.ReasonCooldown, Detail: "The last one was 3 s ago.", RetryAfterMS: 57000}},
	}
}

// fullLedger has each field of a ledger once.
func fullLedger() *abi.Ledger {
	text := func(m int, s string) *abi.LedgerText { return &abi.LedgerText{Message: m, By: "assistant", Text: s} }
	return &abi.Ledger{
		Version: abi.LedgerVersion, Messages: 40, Bytes: 9000, Folder: "/work", Branch: "main",
		Talk: abi.LedgerTalk{
			Requests: []abi.LedgerRequest{{
				Message: 1, Text: "Fix the queue.", Size: 900, Question: text(2, "Which one?"), Files: []string{"queue.go"}, Commits: []string{"1a2b3c4"},
				Outcome: text(8, "Fixed."), Stopped: 9,
			}},
			Rules:    []abi.LedgerText{{Message: 1, By: "user", Text: "Never push.", Kind: "refusal"}},
			Findings: []abi.LedgerText{*text(5, "The lock is held too long.")},
			Plan:     text(3, "Split it."), Question: text(39, "Shall I push?"), Last: text(39, "Done."), Before: &abi.LedgerText{Message: 1, By: "summary", Text: "Before.", Size: -1},
			Tasks:      []abi.LedgerTask{{ID: "1", Message: 4, Text: "test it", Status: abi.TaskDoing}},
			Statements: []abi.LedgerText{{Message: 6, By: "Anna", Text: "I prefer trains.", Kind: "change", Replaces: 2}},
			Words:      &abi.LedgerWords{Labels: []string{"prefer", "trains"}, Kinds: "pp", Runs: []int{2, 0, 1, 200, 300, 70000, -1}},
		},
		Work: abi.LedgerWork{
			Files: []abi.LedgerFile{{
				Path: "/src/queue.go", Read: 2, Reads: 1, Changed: 7, Changes: 2, Created: 3, Verb: "sed -i", State: abi.FileDeleted, At: 7, Names: []string{"NewQueue"},
			}},
			Commands: []abi.LedgerCommand{{Key: "go test", Text: "go test | tail", Message: 8, Runs: 2, Outcome: abi.CommandFailed, Line: "FAIL", Check: true, Reads: true}},
			Errors:   []abi.LedgerError{{Message: 9, Key: "go test", Line: "FAIL", Edits: []string{"queue.go"}, Passed: 12, Runs: 2, Check: true}},
			Commits:  []abi.LedgerCommit{{Message: 20, Hash: "1a2b3c4", Branch: "main", Text: "Fix"}},
			Lookups:  []abi.LedgerLookup{{Message: 21, Tool: "WebSearch", Query: "queue", Line: "results"}},
			Values:   []abi.LedgerValue{{Message: 22, Owner: "order W1", Key: "status", Value: "sent", Before: "open"}},
		},
		Steps: []abi.LedgerStep{{Message: 38, By: abi.RoleTool, Text: "Bash ls", Size: 90, Result: "ok"}},
		Names: []abi.LedgerName{{Text: "queue.go", Count: 4, Call: true, User: true, Agent: true, Last: 38, Own: 30, Home: "/src/queue.go"}},
		Calls: []abi.LedgerCall{{
			Message: 40, ID: "c1", Tool: "Edit", Kind: "edit", Paths: []string{"a.go"}, Text: "x", Names: []string{"A"}, Tasks: []abi.LedgerTask{{Message: 40, Text: "t"}}, Owner: "order W1",
		}},
	}
}

func otherVectors() []vector {
	return []vector{
		{name: "description.minimal", value: &abi.Description{Name: "quiet", Version: "0.1.0", ABI: abi.VersionRange{Min: 1, Max: 1}}},
		{name: "description.full", value: &abi.Description{
			Name: "guard", Version: "1.2.3", ABI: abi.VersionRange{Min: 1, Max: 2}, Summary: "Asks before it deletes.",
			Hooks: []abi.Hook{
				{Phase: abi.ToolGate, Mode: abi.ModeGate, Messages: abi.ViewWindow, Window: 8, Priority: -10, Before: []string{"audit"}, After: []string{"trim"}, OnFailure: abi.FailRun},
				{Phase: abi.RunEnd, Mode: abi.ModeObserve},
				{Phase: abi.BeforeInference, Mode: abi.ModeObserve, Include: []string{abi.IncludeRequest, abi.IncludeSystem}},
			},
			Tools: []abi.Tool{{Name: "list", Description: "Lists files.", Kind: abi.ToolRead, Parameters: map[string]any{
				"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []any{"path"},
			}}},
			State:        []abi.StateKey{{Name: "count", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}, {Name: "last"}},
			Actions:      []abi.Handler{{Name: "report", Mode: abi.ModeTransform, Public: true, OnFailure: abi.FailRun}, {Name: "tidy"}},
			Effects:      []abi.Handler{{Name: "notify"}},
			Capabilities: []abi.Capability{{Name: abi.CapabilityHTTP, Reason: "To look up owners.", Scope: []string{"api.example.com"}}, {Name: abi.CapabilityLog, Optional: true}},
			Policies:     []string{"quota"}, LedgerPolicies: []string{"quota"},
			ConfigSchema: map[string]any{"type": "object", "additionalProperties": false},
		}},
		{name: "description.lazy", value: &abi.Description{
			Name: "counter", Version: "0.1.0", ABI: abi.VersionRange{Min: 1, Max: 1},
			Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeObserve, Messages: abi.ViewAll, LazyMessages: true}},
		}},
		{name: "tool_call.minimal", value: &abi.ToolCall{ID: "c1", Name: "list"}},
		{name: "tool_call.full", value: &conversation()[2].ToolCalls[0]},
		{name: "tool_call.resumed", value: &abi.ToolCall{
			ID: "c1", Name: "pay", IdempotencyKey: "m3/c1/1",
			Resume: &abi.Resume{TicketID: "t1", Reason: "over the limit", DecisionID: "d1", Result: map[string]any{"amount": int64(5)}, Note: "go ahead"},
		}},
		{name: "tool_result.pending", value: &abi.ToolResult{Status: abi.ToolPending, Ticket: &abi.SuspendTicket{
			ID: "t1", Action: "confirm", Message: "Pay 5?", Mode: abi.ResumePassDecision,
		}}},
		{name: "tool_result.minimal", value: &abi.ToolResult{Status: abi.ToolPending}},
		{name: "tool_result.full", value: &abi.ToolResult{
			CallID: "c1", ToolName: "list", Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("a")}, Data: map[string]any{"n": int64(1)}, Message: "1 file",
		}},
		{name: "tool_request.minimal", value: &abi.ToolRequest{ID: "c1", Name: "list"}},
		{name: "tool_request.full", value: &abi.ToolRequest{
			ID: "c1", Name: "memo", Kind: abi.ToolRead, Arguments: map[string]any{"key": "a"}, IdempotencyKey: "m3/c1",
			Resume: &abi.Resume{TicketID: "t1"}, ABI: 1, Run: abi.RunIdentity{ThreadID: "t", RunID: "r", Mode: abi.RunScheduled},
			NowMS: 1700000000000, Step: 2, State: map[string]any{"notes": map[string]any{"a": "b"}}, MessagesTotal: 7,
			Config: map[string]any{"limit": int64(3)},
		}},
		{name: "tool_reply.minimal", value: &abi.ToolReply{Status: abi.ToolError}},
		{name: "tool_reply.full", value: &abi.ToolReply{
			Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("noted")}, Data: map[string]any{"n": int64(1)}, Message: "noted",
			Updates: []abi.Update{{Key: "notes", Op: abi.OpMerge, Value: map[string]any{"a": "b"}}},
			Effects: []abi.Effect{{Type: abi.EffectEmit, EventType: "noted", Payload: "a"}},
		}},
		{name: "tool_reply.pending", value: &abi.ToolReply{Status: abi.ToolPending, Ticket: &abi.SuspendTicket{ID: "t1"}}},
		{name: "validate_request.full", value: &abi.ValidateRequest{ABI: 1, Config: map[string]any{"limit": int64(3)}}},
		{name: "validation.accepted", value: &abi.Validation{}},
		{name: "validation.problems", value: &abi.Validation{Problems: []abi.Problem{{Path: "/limit", Message: "must be even"}, {Message: "name a region"}}}},
		{name: "notice.custom", value: &abi.Notice{Kind: abi.NoticeCustom, TaskID: "bg_1", EventType: "progress", Payload: int64(50)}},
		{name: "notice.cancelled", value: &abi.Notice{Kind: abi.NoticeCancelled, TaskID: "bg_2", Result: "partial"}},
	}
}

// fresh returns a new value of the type that the name of a vector starts with.
func fresh(name string) any {
	kind, _, _ := strings.Cut(name, ".")
	switch kind {
	case "description":
		return new(abi.Description)
	case "event":
		return new(abi.Event)
	case "reply":
		return new(abi.Reply)
	case "tool_call":
		return new(abi.ToolCall)
	case "tool_result":
		return new(abi.ToolResult)
	case "tool_request":
		return new(abi.ToolRequest)
	case "tool_reply":
		return new(abi.ToolReply)
	case "validate_request":
		return new(abi.ValidateRequest)
	case "validation":
		return new(abi.Validation)
	case "summarize_request":
		return new(abi.SummarizeRequest)
	case "summary":
		return new(abi.Summary)
	case "admit_request":
		return new(abi.AdmitRequest)
	case "decision":
		return new(abi.Decision)
	case "notice":
		return new(abi.Notice)
	}
	return nil
}
