package phases_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// guard blocks calls of tools that change files.
type guard struct{}

func (guard) Describe() abi.Description {
	return abi.Description{
		Name:  "guard",
		Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}},
		State: []abi.StateKey{{Name: "blocked", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}},
	}
}

func (guard) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Call.Kind != abi.ToolEdit {
		return nil, nil // no opinion
	}
	return &abi.Reply{
		Updates: []abi.Update{{Key: "blocked", Op: abi.OpAdd, Value: 1}},
		Gate:    &abi.GateDecision{Action: abi.GateBlock, Reason: "this thread is read-only"},
	}, nil
}

// A gate decides about tool calls and counts, for the whole thread, what it
// blocked.
func ExampleRuntime_Fire() {
	r, err := phases.New(phases.Config{
		Plugins: []phases.Plugin{guard{}},
		Record:  func(rec phases.Record) { fmt.Println("record:", rec.Plugin, rec.ToolName, len(rec.Applied)) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := r.NewState(nil)
	for _, call := range []abi.ToolCall{
		{ID: "1", Name: "read_file", Kind: abi.ToolRead},
		{ID: "2", Name: "write_file", Kind: abi.ToolEdit},
	} {
		out, err := r.Fire(context.Background(), state, phases.Frame{Phase: abi.ToolGate, Step: 1, Call: &call})
		if err != nil {
			fmt.Println(err)
			return
		}
		if out.Gate != nil {
			fmt.Println(call.Name, out.Gate.Decision.Action, "by", out.Gate.By+":", out.Gate.Decision.Reason)
		}
	}
	fmt.Println(state.Export())
	// Output:
	// record: guard read_file 0
	// record: guard write_file 1
	// write_file block by guard: this thread is read-only
	// map[guard/blocked:1]
}

// redact hides secrets in what tools return.
type redact struct{}

func (redact) Describe() abi.Description {
	return abi.Description{
		Name:  "redact",
		Hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform, OnFailure: abi.FailRun}},
	}
}

func (redact) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	var b strings.Builder
	for _, block := range e.Result.Content {
		b.WriteString(strings.ReplaceAll(block.Text, "hunter2", "[secret]"))
	}
	return &abi.Reply{Effects: []abi.Effect{{
		Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: []abi.ContentBlock{abi.Text(b.String())}, Note: "one secret",
	}}}, nil
}

// A transform changes a tool's result before the model sees it.
func ExampleOutcome() {
	r, err := phases.New(phases.Config{Plugins: []phases.Plugin{redact{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := r.Fire(context.Background(), r.NewState(nil), phases.Frame{
		Phase: abi.AfterToolExecute, Step: 1, ResultMessageID: "m7",
		Call:   &abi.ToolCall{ID: "1", Name: "env"},
		Result: &abi.ToolResult{CallID: "1", Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("PASSWORD=hunter2")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, edit := range out.Edits {
		fmt.Println(edit.MessageID, edit.Kind, "by", edit.By, "("+edit.Note+"):", edit.Message.Text())
	}
	// Output: m7 replace by redact (one secret): PASSWORD=[secret]
}

// Structure says what is wrong with a conversation before a provider does.
func ExampleCheckStructure() {
	fmt.Println(phases.CheckStructure([]abi.Message{
		{ID: "m1", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "ls"}}},
		{ID: "m2", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("go on")}},
	}))
	// Output: phases: message 1 "m2": it stands between a call and its result: message 0: its call "c1" has no result
}
