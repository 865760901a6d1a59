package llm_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// emitting is a stream of these deltas that ends with an error.
func emitting(err error, deltas ...llm.Delta) func(func(llm.Delta) bool) error {
	return func(emit func(llm.Delta) bool) error {
		for _, d := range deltas {
			if !emit(d) {
				return errors.New("emit returned false")
			}
		}
		return err
	}
}

func TestCollect(t *testing.T) {
	t.Parallel()
	got, err := llm.Collect(emitting(nil,
		llm.Delta{Type: llm.DeltaSignature, Text: "s1"},
		llm.Delta{Type: llm.DeltaSignature, Text: "s2"},
		llm.Delta{Type: llm.DeltaReasoning, Text: "hm"},
		llm.Delta{Type: llm.DeltaSignature, Text: "s3"},
		text("Hi."), call("c1", "read"), args(`{"n":7}`), block(), call("c2", "odd"), args("{oops"),
		llm.Delta{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: 9}},
		llm.Delta{Type: llm.DeltaStop, Stop: abi.StopToolUse, Name: "m-1"},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := &abi.Response{
		Model: "m-1", StopReason: abi.StopToolUse, Usage: &abi.Usage{PromptTokens: 9},
		Message: abi.Message{
			Role: abi.RoleAssistant,
			Content: []abi.ContentBlock{
				{Type: abi.BlockThinking, Signature: "s1"},
				{Type: abi.BlockThinking, Signature: "s2"},
				{Type: abi.BlockThinking, Text: "hm", Signature: "s3"},
				abi.Text("Hi."),
			},
			ToolCalls: []abi.ToolCall{
				{ID: "c1", Name: "read", Arguments: map[string]any{"n": int64(7)}},
				{ID: "c2", Name: "odd", Arguments: "{oops"},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCollectFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := llm.Collect(emitting(broken, text("a"))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	_, err := llm.Collect(emitting(nil, text(strings.Repeat("a", 33<<20))))
	if failure, ok := errors.AsType[*llm.Error](err); !ok || failure.Kind != llm.KindInvalidRequest {
		t.Errorf("too large: %v", err)
	}
}
