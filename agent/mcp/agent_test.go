package mcp_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/agent/mcp"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// script is a model that makes one call after the other.
type script struct {
	calls    []abi.ToolCall
	before   func(step int) // is called before each answer
	requests []llm.Request
}

func (s *script) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	s.requests = append(s.requests, r)
	n := len(s.requests) - 1
	if s.before != nil {
		s.before(n)
	}
	if n >= len(s.calls) {
		return &abi.Response{Message: abi.Message{Content: []abi.ContentBlock{abi.Text("done")}}}, nil
	}
	return &abi.Response{Message: abi.Message{ToolCalls: []abi.ToolCall{s.calls[n]}}}, nil
}

func run(t *testing.T, model *script, tools agent.Tools, listen func(agent.Event)) {
	t.Helper()
	runtime, err := phases.New(phases.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{Profile: agent.Profile{Model: model, Phases: runtime, Tools: tools}, Listen: func(_ context.Context, e agent.Event) {
		if listen != nil {
			listen(e)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Run(t.Context(), agent.Request{
		ThreadID: "t1", Messages: []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("go")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// own are tools of the program itself.
type own struct{}

func (own) Tools() []abi.Tool { return []abi.Tool{{Name: "own"}} }

func (own) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{Message: "mine"}, nil
}

// TestAgent_newTools: a tool that a server adds is in the next request of the run.
func TestAgent_newTools(t *testing.T) {
	t.Parallel()
	s := openOne(t, child(t, "tools"))
	model := &script{calls: []abi.ToolCall{{ID: "1", Name: "mcp__helper__change"}, {ID: "2", Name: "mcp__helper__echo", Arguments: map[string]any{"text": "hi"}}, {ID: "3", Name: "own"}, {ID: "4", Name: "mcp__helper__new"}}}
	model.before = func(step int) {
		if step == 1 {
			eventually(t, "the new tool is listed", func() bool { return find(s, "new") != nil })
		}
	}
	tools, err := agent.JoinTools(own{}, s)
	if err != nil {
		t.Fatal(err)
	}
	run(t, model, tools, nil)
	last := model.requests[len(model.requests)-1]
	if len(model.requests) != 5 || !slices.ContainsFunc(last.Tools, func(tool abi.Tool) bool { return tool.Name == "mcp__helper__new" }) {
		t.Errorf("after %d requests the model was offered %v", len(model.requests), last.Tools)
	}
	if got := last.Messages[len(last.Messages)-1].Content; !slices.Equal(got, []abi.ContentBlock{abi.Text("I am new")}) {
		t.Errorf("the model read %v", got)
	}
}

func TestAgent_progress(t *testing.T) {
	t.Parallel()
	s := openOne(t, child(t, "tools"))
	var progress []string
	run(t, &script{calls: []abi.ToolCall{{ID: "1", Name: "mcp__helper__work"}}}, s, func(e agent.Event) {
		if e.Type != agent.EventToolCallStreamDelta {
			return
		}
		if progress = append(progress, e.Delta); len(progress) == 2 {
			call(t, s, "release", nil)
		}
	})
	if !slices.Equal(progress, []string{"half\n", "2/2\n"}) {
		t.Errorf("the progress was %q", progress)
	}
}

// TestEverything uses the protocol's own test server, which is built on the SDK for TypeScript.
func TestEverything(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	dir := cmp.Or(os.Getenv("MORTISE_NPM_MCP"), filepath.Join("..", "..", "bin", "npm-mcp"))
	server := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	if _, missing := os.Stat(server); err != nil || missing != nil {
		testskip.Skip(t, "node or %s is not there: agent/mcp/testdata/npm/build.sh bin/npm-mcp makes it, with npm", server)
	}
	s := openOne(t, mcp.ServerConfig{Name: "helper", Command: node, Args: []string{server}, StartTimeout: patience})
	if h := s.Health()[0]; h.State != mcp.StateReady {
		t.Fatalf("health is %+v", h)
	}
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, strings.TrimPrefix(tool.Name, "mcp__helper__"))
	}
	t.Logf("tools: %q", names)
	if r := call(t, s, "echo", map[string]any{"message": "hello"}); said(r) != "Echo: hello" {
		t.Errorf("echo answered %+v", r)
	}
	if r := call(t, s, "get-tiny-image", nil); !slices.ContainsFunc(r.Content, func(b abi.ContentBlock) bool { return b.Type == abi.BlockImage && b.Data != "" }) {
		t.Errorf("get-tiny-image answered %+v", r)
	}
	if r := call(t, s, "get-structured-content", map[string]any{"location": "New York"}); r.Data == nil {
		t.Errorf("get-structured-content answered %+v", r)
	}
	var steps int
	run(t, &script{calls: []abi.ToolCall{{ID: "1", Name: "mcp__helper__trigger-long-running-operation", Arguments: map[string]any{"duration": 0.1, "steps": 3}}}}, s, func(e agent.Event) {
		if e.Type == agent.EventToolCallStreamDelta {
			steps++
		}
	})
	if steps == 0 {
		t.Error("there was no progress")
	}
}
