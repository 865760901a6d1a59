package examples_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

func Example_embed() {
	if err := embed(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the model reads: deploy with [REDACTED:github_token]
}

func embed(ctx context.Context) error {
	h, err := host.New(host.Config{})
	if err != nil {
		return err
	}
	defer h.Close(ctx)
	set, err := plugins.Load(ctx, h, []plugins.Entry{{Module: host.Spec{Path: "../testdata/guests/redact.wasm"}}})
	if err != nil {
		return err
	}
	defer set.Close(ctx)
	hooks, err := phases.New(phases.Config{Plugins: set.Plugins()})
	if err != nil {
		return err
	}
	a, err := agent.New(agent.Config{Model: model{}, Tools: tools{}, Phases: hooks})
	if err != nil {
		return err
	}
	ask := abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Which token do we use?")}}
	_, err = a.Run(ctx, agent.Request{ThreadID: "t1", Messages: []abi.Message{ask}})
	return err
}

// model reads a file, and then says what it has read.
type model struct{}

func (model) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == abi.RoleTool {
		fmt.Println("the model reads:", last.Text())
		return &abi.Response{Message: abi.Message{Content: []abi.ContentBlock{abi.Text("It is hidden from me.")}}}, nil
	}
	call := abi.ToolCall{ID: "call_1", Name: "cat", Arguments: map[string]any{"path": ".env"}}
	return &abi.Response{Message: abi.Message{ToolCalls: []abi.ToolCall{call}}}, nil
}

// tools leaks a token, which was made up for this example.
type tools struct{}

func (tools) Tools() []abi.Tool { return []abi.Tool{{Name: "cat", Kind: abi.ToolRead}} }

func (tools) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) {
	secret := "deploy with ghp_R4k9Tz2WmQx7LbV1nYc8HsJ5dFgA3pE6uKoM"
	return abi.ToolResult{Content: []abi.ContentBlock{abi.Text(secret)}}, nil
}
