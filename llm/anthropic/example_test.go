package anthropic_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
)

func ExampleNew() {
	// In place of https://api.anthropic.com, which is the default.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, sse(
			`{"type":"message_start","message":{"model":"claude-sonnet-5-5","usage":{"input_tokens":9}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Good morning."}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`,
			`{"type":"message_stop"}`))
	}))
	defer server.Close()

	model, err := anthropic.New(anthropic.Config{BaseURL: server.URL, Key: "sk-ant-...", HTTP: server.Client()})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := llm.NewClient(llm.ClientConfig{Model: model})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := client.Ask(context.Background(), llm.Request{
		Model:    "claude-sonnet-5-5",
		Messages: []abi.Message{{ID: "1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Greet me.")}}},
	}, func(d llm.Delta) {
		if d.Type == llm.DeltaText {
			fmt.Println(d.Text)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	cost, _ := llm.DefaultPrices().Cost(answer.Response.Model, *answer.Response.Usage)
	fmt.Printf("%d tokens, %.6f USD\n", answer.Response.Usage.TotalTokens, cost)
	// Output:
	// Good morning.
	// 14 tokens, 0.000068 USD
}
