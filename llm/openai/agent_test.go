package openai_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/openai"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
)

// TestAgent runs steps with reasoning and calls against a server that checks each request.
func TestAgent(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]openai.Config{
		"responses": {Summary: "auto"}, "responses without summaries": {}, "chat": {API: openai.Chat},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var thoughts atomic.Int32
			s, err := providertest.New(providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
				thoughts.Add(int32(strings.Count(string(q.Body), `"encrypted_content":`)))
				return adder(q)
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			type input struct {
				A int `json:"a"`
				B int `json:"b"`
			}
			tools, err := agent.Funcs(agent.Func("math.add", "Adds.", func(_ context.Context, in input) (string, error) { return fmt.Sprint(in.A + in.B), nil }))
			if err != nil {
				t.Fatal(err)
			}
			runAgent(t, opened(cfg)(t, s), tools)
			// None in the first request, then one, two, and three in that of the second run.
			if got := thoughts.Load(); cfg.API != openai.Chat && got != 6 {
				t.Errorf("%d reasoning items were sent back, want 6", got)
			}
			for _, b := range s.Bills() {
				if b.Failed {
					t.Errorf("a request was refused: %+v", b)
				}
			}
		})
	}
}

// adder calls the tool twice at once, twice, and then answers with what it has got.
func adder(q providertest.Query) providertest.Answer {
	last := q.Messages[len(q.Messages)-1]
	if last.Text() == "Thanks" {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("You are welcome.")}}
	}
	if q.N == 3 {
		return providertest.Answer{Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "Done."}, abi.Text("The last sum is " + last.Text() + ".")}}
	}
	call := func(n int) abi.ToolCall {
		return abi.ToolCall{ID: fmt.Sprintf("call_%d_%d", q.N, n), Name: q.Tools[0].Name, Arguments: map[string]any{"a": q.N, "b": n}}
	}
	return providertest.Answer{
		Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "Let me add."}, abi.Text("I add.")}, Calls: []abi.ToolCall{call(1), call(2)},
	}
}

func runAgent(t *testing.T, m llm.Model, tools agent.Tools) {
	t.Helper()
	runtime, err := phases.New(phases.Config{})
	if err != nil {
		t.Fatal(err)
	}
	effort := "low"
	a, err := agent.New(agent.Config{Profile: agent.Profile{Model: m, ModelName: "gpt-5", Tools: tools, Phases: runtime, Override: &abi.InferenceOverride{ReasoningEffort: &effort}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range [][2]string{{"Add", "The last sum is 4."}, {"Thanks", "You are welcome."}} {
		result, err := a.Run(t.Context(), agent.Request{ThreadID: "t1", Messages: []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(turn[0])}}}})
		if err != nil {
			t.Fatal(err)
		}
		if result.Response != turn[1] || result.Usage.PromptTokens == 0 {
			t.Errorf("result %+v, want %q", result, turn[1])
		}
	}
}
