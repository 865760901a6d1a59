package llm

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
)

// Model answers requests. Infer returns when the whole answer is there or ctx
// is done; a failure is an *[Error].
type Model interface {
	Infer(ctx context.Context, r Request) (*abi.Response, error)
}

// Request is one question to a model.
type Request struct {
	// ThreadID, RunID, AgentID and Step identify the caller. They are for records, not for the
	// provider.
	ThreadID string
	RunID    string
	AgentID  string
	// Step counts from 1.
	Step int
	// Model is the provider's name of the model, any override applied.
	Model string
	// Messages are the context, system messages first, calls and results whole.
	Messages []abi.Message
	// Tools are those that the model may call.
	Tools []abi.Tool
	// Override changes sampling and limits. Nil changes nothing.
	Override *abi.InferenceOverride
	// KeepMalformed has a [Client] keep calls in the response whose arguments are not JSON,
	// with the text that the model wrote as their arguments. It is not for the provider.
	KeepMalformed bool
}
