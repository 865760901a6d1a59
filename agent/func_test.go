package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
)

type readInput struct {
	Path  string    `json:"path" jsonschema:"where the file is"`
	Lines []int     `json:"lines,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Limit *int8     `json:"limit,omitempty"`
}

type nothing struct{}

func toolsOf(t *testing.T, list ...agent.FuncTool) agent.Tools {
	t.Helper()
	tools, err := agent.Funcs(list...)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func TestFuncSchema(t *testing.T) {
	t.Parallel()
	tools := toolsOf(t,
		agent.Func("read", "Reads a file.", func(_ context.Context, in readInput) (string, error) { return in.Path, nil }).WithKind(abi.ToolRead),
		agent.Func("now", "", func(context.Context, nothing) (string, error) { return "noon", nil }),
	)
	got, err := json.Marshal(tools.Tools())
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"read","description":"Reads a file.","parameters":{"additionalProperties":false,"properties":{` +
		`"limit":{"maximum":127,"minimum":-128,"type":["null","integer"]},` +
		`"lines":{"items":{"type":"integer"},"type":["null","array"]},` +
		`"path":{"description":"where the file is","type":"string"},` +
		`"since":{"type":"string"}},"required":["path"],"type":"object"},"kind":"read"},` +
		`{"name":"now","parameters":{"additionalProperties":false,"properties":{},"type":"object"}}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFuncArguments(t *testing.T) {
	t.Parallel()
	tools := toolsOf(t, agent.Func("read", "", func(_ context.Context, in readInput) (string, error) {
		return fmt.Sprint(in.Path, in.Lines, in.Since.Year(), in.Limit != nil), nil
	}), agent.Func("now", "", func(context.Context, nothing) (string, error) { return "noon", nil }))
	object := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[fmt.Sprint(pairs[i])] = pairs[i+1]
		}
		return m
	}
	cases := []struct {
		name      string
		arguments any
		want      string
	}{
		{"read", object("path", "a", "lines", []any{int64(1), int64(2)}, "since", "2025-03-01T00:00:00Z"), "a[1 2] 2025 false"},
		{"read", nil, "Invalid arguments: "},
		{"read", object("path", int64(7)), "'/path': got number, want string"},
		{"read", object("path", "a", "file", "b"), "additional properties 'file' not allowed"},
		{"read", object("path", "a", "limit", int64(1000)), "at '/limit': maximum: got 1,000, want 127"},
		{"read", object("path", "a", "since", "yesterday"), "Invalid arguments: parsing time"},
		{"read", `{"path": "a`, "got string, want object"},
		{"now", nil, "noon"},
	}
	for _, c := range cases {
		got, err := tools.CallTool(t.Context(), abi.ToolCall{ID: "c1", Name: c.name, Arguments: c.arguments})
		if err != nil || !strings.Contains(got.Message, c.want) || (got.Status == abi.ToolError) != strings.HasPrefix(got.Message, "Invalid arguments: ") {
			t.Errorf("%v: got %+v, %v; want %s", c.arguments, got, err, c.want)
		}
	}
	if _, err := tools.CallTool(t.Context(), abi.ToolCall{Name: "write"}); err == nil || err.Error() != "tool 'write' not found" {
		t.Errorf("unknown tool: %v", err)
	}
}

func TestFuncResults(t *testing.T) {
	t.Parallel()
	type found struct {
		ID   int64    `json:"id"`
		Tags []string `json:"tags"`
		Cost float64  `json:"cost"`
	}
	broken := errors.New("the disk is gone")
	tools := toolsOf(t,
		agent.Func("struct", "", func(context.Context, nothing) (found, error) {
			return found{ID: 9007199254740993, Tags: []string{"a"}, Cost: 0.5}, nil
		}),
		agent.Func("any", "", func(context.Context, nothing) (any, error) { return "text", nil }),
		agent.Func("nil", "", func(context.Context, nothing) (*found, error) { return nil, nil }),
		agent.Func("blocks", "", func(context.Context, nothing) ([]abi.ContentBlock, error) {
			return []abi.ContentBlock{{Type: abi.BlockImage, URL: "https://example.org"}}, nil
		}),
		agent.Func("result", "", func(context.Context, nothing) (abi.ToolResult, error) {
			return abi.ToolResult{Status: abi.ToolPending, Message: "wait"}, nil
		}),
		agent.Func("error", "", func(context.Context, nothing) (string, error) { return "", broken }),
		agent.Func("channel", "", func(context.Context, nothing) (any, error) { return make(chan int), nil }),
	)
	for name, want := range map[string]string{
		"struct":  `{"status":"","data":{"cost":0.5,"id":9007199254740993,"tags":["a"]}} <nil>`,
		"any":     `{"status":"","message":"text"} <nil>`,
		"nil":     `{"status":"","message":"null"} <nil>`,
		"blocks":  `{"status":"","content":[{"type":"image","url":"https://example.org"}]} <nil>`,
		"result":  `{"status":"pending","message":"wait"} <nil>`,
		"error":   `{"status":""} the disk is gone`,
		"channel": `{"status":""} the result chan int is not JSON: json: unsupported type: chan int`,
	} {
		result, err := tools.CallTool(t.Context(), abi.ToolCall{Name: name})
		data, failed := json.Marshal(result)
		if got := fmt.Sprintf("%s %v", data, err); failed != nil || got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

func TestFuncsRefuse(t *testing.T) {
	t.Parallel()
	type cycle struct {
		Next *cycle `json:"next"`
	}
	fine := agent.Func("fine", "", func(context.Context, nothing) (string, error) { return "", nil })
	for want, list := range map[string][]agent.FuncTool{
		`tool "text": its input is string, must be a struct`: {agent.Func("text", "", func(context.Context, string) (string, error) { return "", nil })},
		`tool "loop": its input agent_test.cycle`:            {agent.Func("loop", "", func(context.Context, cycle) (string, error) { return "", nil })},
		`tool "chan": its input struct`:                      {agent.Func("chan", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })},
		"already registered: fine":                           {fine, fine},
		"has no name":                                        {agent.Func("", "", func(context.Context, nothing) (string, error) { return "", nil })},
		"was not made by Func":                               {{}},
	} {
		if _, err := agent.Funcs(list...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

// A function that panics, or fails, is a result that the model reads.
func TestFuncInARun(t *testing.T) {
	t.Parallel()
	tools := toolsOf(t,
		agent.Func("panics", "", func(context.Context, nothing) (string, error) { panic("no idea") }),
		agent.Func("fails", "", func(context.Context, nothing) (string, error) { return "", errors.New("no disk") }),
	)
	runtime, err := phases.New(phases.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{
		Profile: agent.Profile{
			Model:  &script{answers: []abi.Message{says("", abi.ToolCall{ID: "c1", Name: "panics"}, abi.ToolCall{ID: "c2", Name: "fails"}), says("done")}},
			Tools:  tools,
			Phases: runtime,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, m := range a.Thread(request().ThreadID).Messages() {
		if m.Role == abi.RoleTool {
			results = append(results, m.Text())
		}
	}
	if got := strings.Join(results, "|"); !strings.Contains(got, "the tool panicked: no idea") || !strings.Contains(got, "Execution failed: no disk") {
		t.Errorf("results %q", got)
	}
}

// A Go function becomes a tool: the model gets a schema of its input.
func ExampleFunc() {
	type input struct {
		City string `json:"city" jsonschema:"name of the city, in English"`
		Days int    `json:"days,omitempty"`
	}
	weather := agent.Func("weather", "Tells the weather.", func(_ context.Context, in input) (string, error) {
		return "It is sunny in " + in.City + ".", nil
	}).WithKind(abi.ToolRead)
	tools, err := agent.Funcs(weather)
	if err != nil {
		panic(err)
	}
	for _, arguments := range []map[string]any{{"city": "Lisbon"}, {"town": "Lisbon"}} {
		result, err := tools.CallTool(context.Background(), abi.ToolCall{Name: "weather", Arguments: arguments})
		fmt.Println(result.Message, err)
	}
	// Output:
	// It is sunny in Lisbon. <nil>
	// Invalid arguments: at '': missing property 'city'; at '': additional properties 'town' not allowed. Call it again with arguments that fit its schema. <nil>
}
