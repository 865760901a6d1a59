package agent_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// noShell is a native plugin. It blocks every call of the tool "shell".
type noShell struct{}

func (noShell) Describe() abi.Description {
	return abi.Description{
		Name: "no-shell", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}},
	}
}

func (noShell) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Call.Name != "shell" {
		return nil, nil
	}
	return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "there is no shell here"}}, nil
}

// eager is a model that always wants the shell.
type eager struct{}

func (eager) Infer(context.Context, llm.Request) (*abi.Response, error) {
	return &abi.Response{Message: abi.Message{
		Content:   []abi.ContentBlock{abi.Text("Let me look.")},
		ToolCalls: []abi.ToolCall{{ID: "call_1", Name: "shell", Arguments: map[string]any{"command": "ls"}}},
	}}, nil
}

func ExampleAgent() {
	runtime, err := phases.New(phases.Config{Plugins: []phases.Plugin{noShell{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := agent.New(agent.Config{Model: eager{}, Phases: runtime})
	if err != nil {
		fmt.Println(err)
		return
	}
	question := abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("What is in this folder?")}}
	result, err := a.Run(context.Background(), agent.Request{ThreadID: "t1", Messages: []abi.Message{question}})
	fmt.Println(result.Termination.Type, result.Steps, err)
	for _, m := range a.Thread("t1").Messages() {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	// Output:
	// blocked 1 <nil>
	// user: What is in this folder?
	// assistant: Let me look.
	// tool: Denied: there is no shell here
}
