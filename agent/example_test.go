package agent_test

import (
	"context"
	"errors"
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

// careful is a gate that asks a person about every call.
type careful struct{ noShell }

func (careful) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Gate: &abi.GateDecision{
		Action: abi.GateSuspend, Reason: "a person decides", Ticket: &abi.SuspendTicket{ID: "ask_" + e.Call.ID, Action: "confirm"},
	}}, nil
}

// shell is a tool runner.
type shell struct{}

func (shell) Tools() []abi.Tool { return []abi.Tool{{Name: "shell", Kind: abi.ToolExecute}} }

func (shell) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{Message: "go.mod"}, nil
}

// A run that waits for a decision continues in another process.
func ExampleAgent_Run() {
	ctx, checkpoints := context.Background(), agent.NewMemory()
	process := func() *agent.Agent {
		runtime, err := phases.New(phases.Config{Plugins: []phases.Plugin{careful{}}})
		if err != nil {
			panic(err)
		}
		a, err := agent.New(agent.Config{
			Profile: agent.Profile{Model: eager{}, Tools: shell{}, Phases: runtime}, Checkpoints: checkpoints,
			Limits: agent.Limits{Stop: []agent.StopPolicy{{Type: agent.StopMaxRounds, Rounds: 1}}},
		})
		if err != nil {
			panic(err)
		}
		return a
	}
	question := abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("What is in this folder?")}}
	result, err := process().Run(ctx, agent.Request{ThreadID: "t1", Messages: []abi.Message{question}})
	fmt.Println(result.Status, result.Tickets[0].ID, err)

	other := process()
	decision := agent.Decision{Target: "ask_call_1", Action: agent.ActionResume}
	result, err = other.Run(ctx, agent.Request{ThreadID: "t1", Decisions: []agent.Decision{decision}})
	fmt.Println(result.Status, result.StatusReason, err)
	log := other.Thread("t1").Messages()
	fmt.Println(log[2].Text())
	// Output:
	// waiting ask_call_1 <nil>
	// done stopped:max_rounds <nil>
	// go.mod
}

// A run that is under way is found by its id or that of its thread.
func ExampleAgent_Control() {
	runtime, err := phases.New(phases.Config{})
	if err != nil {
		panic(err)
	}
	a, err := agent.New(agent.Config{Profile: agent.Profile{Model: eager{}, Phases: runtime}})
	if err != nil {
		panic(err)
	}
	_, err = a.Control("t1")
	fmt.Println(errors.Is(err, agent.ErrNoRun))
	// Output: true
}

func ExampleAgent() {
	runtime, err := phases.New(phases.Config{Plugins: []phases.Plugin{noShell{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := agent.New(agent.Config{Profile: agent.Profile{Model: eager{}, Phases: runtime}})
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
