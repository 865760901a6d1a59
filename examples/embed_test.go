package examples_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

func Example_embed() {
	ctx := context.Background()
	h := must(host.New(host.Config{}))
	defer h.Close(ctx)
	set := must(plugins.Load(ctx, h, []plugins.Entry{
		{Module: host.Spec{Path: "../testdata/guests/redact.wasm"}},
	}))
	defer set.Close(ctx)
	hooks := must(phases.New(phases.Config{Plugins: set.Plugins()}))
	a := must(agent.New(agent.Config{Profile: agent.Profile{Model: model{}, Tools: tools{}, Phases: hooks}}))
	result := must(a.Run(ctx, agent.Request{ThreadID: "t1", Messages: []abi.Message{
		{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Which token do we use?")}},
	}}))
	fmt.Println("the run ended with", result.Termination.Type)
	// Output:
	// the model reads: deploy with [REDACTED:github_token]
	// the run ended with natural_end
}

// must is for examples: a program handles its errors.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestReadmeShowsTheExample keeps the README's code the one that runs.
func TestReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("embed_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "ctx := context.Background()\n")
	code, _, _ = strings.Cut(code, "\t// Output:")
	for line := range strings.Lines(code) {
		if line = strings.TrimPrefix(line, "\t"); !strings.Contains(string(readme), line) {
			t.Errorf("the README does not have the line %q", line)
		}
	}
}

// model reads a file, and then repeats what it has read.
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
