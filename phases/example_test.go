package phases_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/state"
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
	st := r.NewState(nil)
	for _, call := range []abi.ToolCall{
		{ID: "1", Name: "read_file", Kind: abi.ToolRead},
		{ID: "2", Name: "write_file", Kind: abi.ToolEdit},
	} {
		out, err := r.Fire(context.Background(), st, phases.Frame{Phase: abi.ToolGate, Step: 1, Call: &call})
		if err != nil {
			fmt.Println(err)
			return
		}
		if out.Gate != nil {
			fmt.Println(call.Name, out.Gate.Decision.Action, "by", out.Gate.By+":", out.Gate.Decision.Reason)
		}
	}
	fmt.Println(st.Export())
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

// diary executes an action, which anyone may schedule, and an effect.
type diary struct{}

func (diary) Describe() abi.Description {
	return abi.Description{
		Name:    "diary",
		Actions: []abi.Handler{{Name: "write", Public: true}},
		Effects: []abi.Handler{{Name: "publish"}},
		State:   []abi.StateKey{{Name: "lines", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}},
	}
}

func (diary) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	switch {
	case e.Effect != nil:
		return nil, errors.New("the printer is out of paper")
	case e.Action != nil:
		return &abi.Reply{
			Updates: []abi.Update{{Key: "lines", Op: abi.OpAppend, Value: []any{e.Action.Payload}}},
			Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "publish", Payload: e.Action.Payload}},
		}, nil
	}
	return nil, nil
}

// The program schedules an action for the end of the step. The effect that it asks
// for fails, and is kept for later.
func ExampleRuntime_Submit() {
	ctx := context.Background()
	r, err := phases.New(phases.Config{Plugins: []phases.Plugin{diary{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := r.NewState(nil)
	if _, err := r.Submit(ctx, st, phases.Command{
		Actions: []abi.Action{{Phase: abi.StepEnd, Key: "diary/write", Payload: "it rained"}},
	}); err != nil {
		fmt.Println(err)
		return
	}
	out, err := r.Fire(ctx, st, phases.Frame{Phase: abi.StepEnd, Step: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	lines, _ := st.Read("diary/lines")
	fmt.Println(out.Report.Processed, "action,", out.Report.EffectsFailed, "failed effect:", lines)
	letters, _ := st.DeadLetters()
	fmt.Println(letters[0].Key, letters[0].Payload, "-", letters[0].Err)
	// Output:
	// 1 action, 1 failed effect: [it rained]
	// diary/publish it rained - the printer is out of paper
}

// A run continues in another process, with the values and actions that it had.
func ExampleRuntime_Resume() {
	ctx := context.Background()
	r, err := phases.New(phases.Config{Plugins: []phases.Plugin{diary{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := r.NewState(nil)
	if _, err := r.Submit(ctx, st, phases.Command{Actions: []abi.Action{{Phase: abi.RunEnd, Key: "diary/write", Payload: "good night"}}}); err != nil {
		fmt.Println(err)
		return
	}
	img := st.Store().Export() // a checkpoint

	resumed, err := r.Resume(img, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := r.Fire(ctx, resumed, phases.Frame{Phase: abi.RunEnd})
	fmt.Println(out.Report.Processed, resumed.Export()["diary/lines"], err)
	// Output: 1 [good night] <nil>
}

// peak keeps the largest context that it saw, with a reducer of its own.
type peak struct{}

func (peak) Describe() abi.Description {
	return abi.Description{
		Name:  "peak",
		Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeObserve}},
		State: []abi.StateKey{{Name: "messages", Merge: abi.MergeCommutative}},
	}
}

func (peak) NativeState() map[string]state.Native {
	return map[string]state.Native{"messages": {Reduce: func(old any, _ abi.Op, operand any) (any, error) {
		before, _ := old.(int64)
		seen, ok := operand.(int64)
		if !ok {
			return nil, errors.New("the operand is not a number")
		}
		return max(before, seen), nil
	}}}
}

func (peak) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Updates: []abi.Update{{Key: "messages", Op: "largest", Value: e.MessagesTotal}}}, nil
}

// A built-in plugin with a reducer of its own is called whatever the filter says.
func ExampleNativeState() {
	r, err := phases.New(phases.Config{
		Builtins: []phases.Plugin{peak{}}, Plugins: []phases.Plugin{guard{}, redact{}}, Active: []string{"guard"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := r.NewState(nil)
	for _, n := range []int{2, 5, 3} {
		f := phases.Frame{Phase: abi.BeforeInference, Step: 1, Messages: make([]abi.Message, n)}
		if _, err := r.Fire(context.Background(), st, f); err != nil {
			fmt.Println(err)
			return
		}
	}
	largest, _ := st.Read("peak/messages")
	fmt.Println(largest, r.Order(abi.BeforeInference), r.Order(abi.AfterToolExecute))
	// Output: 5 [peak] []
}

// Structure finds what is wrong with a conversation before a provider does.
func ExampleCheckStructure() {
	fmt.Println(phases.CheckStructure([]abi.Message{
		{ID: "m1", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "ls"}}},
		{ID: "m2", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("go on")}},
	}))
	// Output: phases: message 1 "m2": it stands between a call and its result: message 0: its call "c1" has no result
}
