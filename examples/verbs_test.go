package examples_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

// caller is a model that makes calls, one in each step.
type caller struct{ calls []abi.ToolCall }

func (c *caller) Infer(context.Context, llm.Request) (*abi.Response, error) {
	out := &abi.Response{Usage: &abi.Usage{TotalTokens: 10}, Message: abi.Message{Content: []abi.ContentBlock{abi.Text("so be it")}}}
	if len(c.calls) > 0 {
		out.Message.ToolCalls, c.calls = c.calls[:1], c.calls[1:]
	}
	return out, nil
}

// files are tools that read and write, and remember what they were called with.
type files struct{ ran []string }

func (f *files) Tools() []abi.Tool {
	path := map[string]any{
		"type": "object", "required": []any{"path"}, "additionalProperties": false,
		"properties": map[string]any{"path": map[string]any{"type": "string"}, "text": map[string]any{"type": "string"}},
	}
	return []abi.Tool{{Name: "read", Kind: abi.ToolRead, Parameters: path}, {Name: "write", Kind: abi.ToolEdit, Parameters: path}}
}

func (f *files) CallTool(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
	f.ran = append(f.ran, fmt.Sprint(c.Name, " ", c.Arguments))
	return abi.ToolResult{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("result %d", len(f.ran)))}}, nil
}

// journey is a run through one plugin that was built from its source.
type journey struct {
	result agent.Result
	files  files
	tools  []string // what the model read of each call
	events []agent.Event
}

func travel(t *testing.T, h *host.Host, file string, config any, calls ...abi.ToolCall) *journey {
	t.Helper()
	set, err := plugins.Load(t.Context(), h, []plugins.Entry{{Module: host.Spec{Path: file}, Config: config}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	rt, err := phases.New(phases.Config{Plugins: set.Plugins()})
	if err != nil {
		t.Fatal(err)
	}
	own, err := set.Tools()
	if err != nil {
		t.Fatal(err)
	}
	j := &journey{}
	tools, err := agent.JoinTools(&j.files, own)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{
		Profile: agent.Profile{Model: &caller{calls: calls}, Tools: tools, Phases: rt},
		Listen:  func(_ context.Context, e agent.Event) { j.events = append(j.events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	question := []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Go on.")}}}
	if j.result, err = a.Run(t.Context(), agent.Request{ThreadID: "t", Messages: question}); err != nil {
		t.Fatal(err)
	}
	for _, m := range a.Thread("t").Messages() {
		if m.Role == abi.RoleTool {
			j.tools = append(j.tools, m.Text())
		}
	}
	return j
}

func call(n int, name string, arguments any) abi.ToolCall {
	return abi.ToolCall{ID: fmt.Sprint("c", n), Name: name, Arguments: arguments}
}

func at(path string) map[string]any { return map[string]any{"path": path} }

// TestMemo: a repeated call is answered without the tool, a change forgets, and the
// plugin's own tool reads and changes what its hooks keep.
func TestMemo(t *testing.T) {
	t.Parallel()
	file := buildGuest(t, "plugins", "memo")
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		j := travel(t, h, file, nil,
			call(1, "read", at("a")), call(2, "read", at("a")), call(3, "memo", nil),
			call(4, "memo", map[string]any{"forget": true}), call(5, "read", at("a")), call(6, "write", at("a")), call(7, "read", at("a")))
		want := []string{"result 1", "result 1", `read {"path":"a"} (8 bytes, 0 s ago)` + "\n", "Forgot 1 results.", "result 2", "result 3", "result 4"}
		if !slices.Equal(j.tools, want) {
			t.Errorf("the model reads %q", j.tools)
		}
		forgot := slices.ContainsFunc(j.events, func(e agent.Event) bool {
			return e.Type == agent.EventCustom && e.Name == "memo.forgot" && e.By == "memo" && e.Payload == int64(1)
		})
		if len(j.files.ran) != 4 || !forgot {
			t.Errorf("ran %q, forgot %v", j.files.ran, forgot)
		}
	})
}

// TestBudget: a run stops when it has used its tokens, a call too many waits for a
// decision, and the end reports what was used.
func TestBudget(t *testing.T) {
	t.Parallel()
	file := buildGuest(t, "plugins", "budget")
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		used := func(j *journey) map[string]any {
			for _, e := range j.events {
				if e.Type == agent.EventCustom && e.Name == "budget.used" {
					payload, _ := e.Payload.(map[string]any)
					return payload
				}
			}
			return nil
		}
		j := travel(t, h, file, map[string]any{"max_tokens": int64(25)}, call(1, "read", at("a")), call(2, "read", at("b")), call(3, "read", at("c")))
		if end := j.result.Termination; end.Code != "budget_tokens" || len(j.files.ran) != 2 {
			t.Errorf("end %+v, ran %q", end, j.files.ran)
		}
		if got := used(j); got["tokens"] != int64(30) || got["calls"] != int64(2) || got["termination"] != string(abi.TerminationStopped) {
			t.Errorf("used %v", got)
		}
		j = travel(t, h, file, map[string]any{"max_calls": int64(1)}, call(1, "read", at("a")), call(2, "read", at("b")))
		if len(j.result.Tickets) != 1 || j.result.Tickets[0].ID != "budget-c2" || len(j.files.ran) != 1 {
			t.Errorf("tickets %+v, ran %q", j.result.Tickets, j.files.ran)
		}
		_, err := plugins.Load(t.Context(), h, []plugins.Entry{{
			Module: host.Spec{Path: file}, Config: map[string]any{"max_tokens": int64(9), "max_thread_tokens": int64(5)},
		}})
		if err == nil || !strings.Contains(err.Error(), "at '/max_tokens': is 9, more than max_thread_tokens (5)") {
			t.Errorf("error %v", err)
		}
	})
}

// TestJSONFix: arguments that are no JSON are repaired before the tool runs. Those that
// cannot be repaired, and those that do not fit the tool's schema, do not reach it.
func TestJSONFix(t *testing.T) {
	t.Parallel()
	file := buildGuest(t, "plugins", "jsonfix")
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		j := travel(t, h, file, nil,
			call(1, "read", "```json\n{'path': 'a',}\n```"), call(2, "read", `{"path": "b`), call(3, "read", `{"file": "c",}`))
		if !slices.Equal(j.files.ran, []string{"read map[path:a]"}) {
			t.Errorf("ran %q, the model reads %q", j.files.ran, j.tools)
		}
		if len(j.tools) != 3 || j.tools[0] != "result 1" || !strings.Contains(j.tools[1], "JSON") || strings.Contains(j.tools[2], "result") {
			t.Errorf("the model reads %q", j.tools)
		}
	})
}
