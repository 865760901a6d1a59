package phasestest

import (
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// Frame returns a frame of a small run: a question, an answer with one call, and
// what belongs to the phase.
func Frame(p abi.Phase) phases.Frame {
	call := abi.ToolCall{ID: "call_1", Name: "read_file", Kind: abi.ToolRead, Arguments: map[string]any{"path": "go.mod"}}
	question := abi.Message{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Which module is this?")}}
	asks := abi.Message{
		ID: "m2", Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("I read the file.")}, ToolCalls: []abi.ToolCall{call},
	}
	result := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("module example")}}
	f := phases.Frame{
		Phase: p, Step: 1, Messages: []abi.Message{question},
		Run: abi.RunIdentity{ThreadID: "thread", RunID: "run", AgentID: "agent"},
	}
	switch p {
	case abi.RunStart:
		f.Step = 0
	case abi.AfterInference:
		f.Response = &abi.Response{
			Model: "model", Message: asks, StopReason: abi.StopToolUse,
			Usage: &abi.Usage{PromptTokens: 20, CompletionTokens: 10, TotalTokens: 30},
		}
	case abi.ToolGate, abi.BeforeToolExecute, abi.AfterToolExecute:
		f.Messages = append(f.Messages, asks)
		f.Call = &call
		if p == abi.AfterToolExecute {
			f.Result, f.ResultMessageID = &result, "m3"
		}
	case abi.StepEnd, abi.RunEnd:
		f.Messages = append(f.Messages, asks, abi.Message{
			ID: "m3", Role: abi.RoleTool, ToolCallID: call.ID, Content: result.Content,
		})
	case abi.BeforeCompaction, abi.AfterCompaction:
		f.Compaction = &abi.Compaction{
			ID: "compaction_1", Policy: "policy", FromID: question.ID, ToID: question.ID, Messages: 1,
			TokensBefore: 900, RangeTokens: 600, ThresholdTokens: 800, WindowTokens: 1000,
		}
		if p == abi.AfterCompaction {
			f.Compaction.Outcome, f.Compaction.TokensAfter, f.Compaction.Summary = abi.CompactionSwapped, 350, "A question."
		}
	default:
		f.Notices = []abi.Notice{{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: map[string]any{"lines": int64(3)}}}
	}
	return f
}

// event is what a hook gets of such a frame, before anything was written to its
// state.
func event(h abi.Hook) *abi.Event {
	f := Frame(h.Phase)
	e := &abi.Event{
		ABI: abi.Version, Phase: h.Phase, Run: f.Run, Step: f.Step, MessagesTotal: len(f.Messages),
		Response: f.Response, Call: f.Call, Result: f.Result, ResultMessageID: f.ResultMessageID, Notices: f.Notices,
		Compaction: f.Compaction,
	}
	switch h.Messages {
	case abi.ViewAll, abi.ViewDelta:
		e.Messages = f.Messages
	case abi.ViewLast:
		e.Messages = f.Messages[len(f.Messages)-1:]
	case abi.ViewWindow:
		e.Messages = f.Messages[max(0, len(f.Messages)-h.Window):]
	default:
		return e
	}
	e.MessagesFrom = len(f.Messages) - len(e.Messages)
	return e
}
