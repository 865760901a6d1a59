package llm_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

func ExampleError() {
	err := fmt.Errorf("inference failed: %w", &llm.Error{
		Kind: llm.KindRateLimited, Model: "small-1", Message: "slow down", RetryAfter: 2 * time.Second,
	})

	if e, ok := errors.AsType[*llm.Error](err); ok && e.Retryable() {
		fmt.Println("wait", e.RetryAfter)
	}
	fmt.Println(err)
	// Output:
	// wait 2s
	// inference failed: llm: rate limited (model small-1): slow down
}

// flaky is overloaded once.
type flaky struct{ asked int }

func (f *flaky) Infer(context.Context, llm.Request) (*abi.Response, error) {
	f.asked++
	if f.asked == 1 {
		return nil, &llm.Error{Kind: llm.KindOverloaded}
	}
	return &abi.Response{Message: abi.Message{Content: []abi.ContentBlock{abi.Text("Here I am.")}}}, nil
}

func ExampleClient() {
	client, err := llm.NewClient(llm.ClientConfig{Model: &flaky{}, Retry: llm.Retry{OverloadedBackoffBaseMS: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := client.Ask(context.Background(), llm.Request{Model: "m"}, nil)
	fmt.Println(answer.Response.Message.Text(), answer.Requests, err)
	// Output: Here I am. 2 <nil>
}
