package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/openai"
)

// A local server with an OpenAI-compatible endpoint, such as vLLM or Ollama, is asked over
// Chat Completions. A client adds retries, and the streamed text comes while it is written.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"model":"qwen3","choices":[{"index":0,"delta":{"content":"Hello, "}}]}

data: {"model":"qwen3","choices":[{"index":0,"delta":{"content":"you."},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}

data: [DONE]

`)
	}))
	defer server.Close()

	model, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", API: openai.Chat, HTTP: server.Client()})
	if err != nil {
		panic(err)
	}
	client, err := llm.NewClient(llm.ClientConfig{Model: model})
	if err != nil {
		panic(err)
	}
	request := llm.Request{Model: "qwen3", Messages: []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Hi!")}}}}
	answer, err := client.Ask(context.Background(), request, func(d llm.Delta) { fmt.Printf("%q ", d.Text) })
	fmt.Println(answer.Response.Message.Text(), answer.Response.Usage.TotalTokens, err)
	// Output: "Hello, " "you." Hello, you. 13 <nil>
}
