package recall_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/recall"
)

func message(role abi.Role, text string) abi.Message {
	return abi.Message{Role: role, Content: []abi.ContentBlock{abi.Text(text)}}
}

// conversation has a long output at m3.
func conversation() []abi.Message {
	var long strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&long, "line %d of the größte log\n", i)
	}
	ask := message(abi.RoleAssistant, "I look.")
	ask.ID, ask.ToolCalls = "a1", []abi.ToolCall{{ID: "c", Name: "shell", Arguments: map[string]any{"command": "cat build.log"}}}
	out := message(abi.RoleTool, long.String())
	out.ToolCallID = "c"
	self := message(abi.RoleAssistant, "")
	self.ToolCalls = []abi.ToolCall{{ID: "r", Name: recall.Name, Arguments: map[string]any{"query": "shuttle"}}}
	found := message(abi.RoleTool, "[m1 user] take the shuttle to Bremen")
	found.ToolCallID = "r"
	return []abi.Message{message(abi.RoleUser, "Please take the shuttle to Bremen, not the train."), ask, out, message(abi.RoleAssistant, "The train was booked for Bremen."), self, found}
}

func call(t *testing.T, args map[string]any) (string, bool) {
	t.Helper()
	tool := recall.Tool{Log: func(context.Context) ([]abi.Message, error) { return conversation(), nil }}
	r, err := tool.CallTool(t.Context(), abi.ToolCall{ID: "x", Name: recall.Name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status == abi.ToolError {
		return r.Message, false
	}
	return r.Content[0].Text, true
}

func TestRecall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args map[string]any
		want string // begins with
		ok   bool
	}{
		"a message":           {map[string]any{"id": "m4"}, "[m4 assistant]\nThe train was booked for Bremen.\n", true},
		"a number":            {map[string]any{"id": "4"}, "[m4 assistant]\nThe train", true},
		"the id of a message": {map[string]any{"id": "a1"}, "[m2 assistant]\nI look.\nshell {\"command\":\"cat build.log\"}\n", true},
		"a range":             {map[string]any{"id": "m1-m2"}, "[m1 user]\nPlease take the shuttle to Bremen, not the train.\n[m2 assistant]\nI look.", true},
		"beyond the end":      {map[string]any{"id": "m4-m99"}, "[m4 assistant]", true},
		"words":               {map[string]any{"query": "Bremen train"}, "[m4 assistant] The train was booked for Bremen.\n[m1 user] Please", true},
		"most of the words":   {map[string]any{"query": "shuttle bremen tomorrow"}, "[m1 user] Please take the shuttle", true},
		"words in a call":     {map[string]any{"query": "build.log"}, "[m2 assistant] I look. shell", true},
		"words in a range":    {map[string]any{"id": "m1-m3", "query": "Bremen"}, "[m1 user] Please", true},
		"no such words":       {map[string]any{"query": "zeppelin"}, "No message holds these words.", true},
		"nothing":             {nil, "invalid arguments: name a message", false},
		"no number":           {map[string]any{"id": "mx"}, "invalid id \"mx\"", false},
		"too large":           {map[string]any{"id": "m7"}, "id \"m7\": the conversation has the messages m1 to m6", false},
		"backwards":           {map[string]any{"id": "m3-m2"}, "id \"m3-m2\"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := call(t, tc.args); ok != tc.ok || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %v %.300q, want %q", ok, got, tc.want)
			}
		})
	}
	if got, _ := call(t, map[string]any{"query": "shuttle"}); strings.Contains(got, "m6") {
		t.Errorf("an answer of the tool was found: %s", got)
	}
}

// TestPages: the pages of a long output are the output.
func TestPages(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	at := 0
	for range 20 {
		got, ok := call(t, map[string]any{"id": "m3", "offset": int64(at)})
		if !ok || len(got) > 8400 {
			t.Fatalf("%d bytes: %.200s", len(got), got)
		}
		end := strings.LastIndex(got, "\n[bytes ")
		all.WriteString(got[:end])
		var from, to, total, next int
		if n, _ := fmt.Sscanf(got[end+1:], "[bytes %d to %d of %d; continue with offset %d]", &from, &to, &total, &next); n < 4 {
			break
		}
		at = next
	}
	want := conversation()[2].Text()
	if got := strings.TrimPrefix(all.String(), "[m3 tool]\n"); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%d bytes of %d", len(got), len(want))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	tool := recall.Tool{Log: func(context.Context) ([]abi.Message, error) { return nil, gone }}
	if _, err := tool.CallTool(t.Context(), abi.ToolCall{Name: recall.Name, Arguments: map[string]any{"id": "m1"}}); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
	if _, err := tool.CallTool(t.Context(), abi.ToolCall{Name: "other"}); err == nil {
		t.Error("another tool was called")
	}
	if l := tool.Tools(); len(l) != 1 || l[0].Name != recall.Name || l[0].Kind != abi.ToolRead {
		t.Errorf("tools %+v", l)
	}
}
