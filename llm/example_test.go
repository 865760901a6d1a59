package llm_test

import (
	"errors"
	"fmt"
	"time"

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
