package eval_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

func TestDerive(t *testing.T) {
	t.Parallel()
	call := abi.Message{ID: "m2", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c", Name: "bash", Arguments: map[string]any{"command": "go test ./pkg/deep/x_test.go"}}}}
	c := eval.Conversation{ID: "c", Messages: []abi.Message{
		say(abi.RoleUser, "m0", "Look at https://example.org/a/b. and order W123456; the budget is 4,200 euros."),
		say(abi.RoleAssistant, "m1", "onlyOnceSeen once; retryLimit is 3."),
		call,
		{ID: "m3", Role: abi.RoleTool, ToolCallID: "c", Content: []abi.ContentBlock{abi.Text("panic: send on closed channel\nretryLimit")}},
	}}
	var got []string
	for _, p := range eval.Derive(c) {
		if p.Conversation != "c" || p.Question != "" || len(p.Answers) != 1 {
			t.Errorf("probe %+v", p)
		}
		got = append(got, p.Answers[0])
	}
	want := []string{"https://example.org/a/b", "panic: send on closed channel", "./pkg/deep/x_test.go", "W123456", "retryLimit", "x_test", "4,200"}
	if !slices.Equal(got, want) {
		t.Errorf("derived %q, want %q", got, want)
	}
}

func TestDeriveIsBoundedAndSpread(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range 400 {
		texts = append(texts, fmt.Sprintf("the value is in file_number_%04d", i))
	}
	list := eval.Derive(talk("c", texts...))
	if len(list) != 40 {
		t.Fatalf("%d probes", len(list))
	}
	if list[0].Answers[0] != "file_number_0000" || list[39].Answers[0] != "file_number_0390" {
		t.Errorf("from %q to %q", list[0].Answers[0], list[39].Answers[0])
	}
}
