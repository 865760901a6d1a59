package summarizers

import "github.com/mortise-dev/mortise/abi"

// WithoutOriginals is what a guest gets of messages.
func WithoutOriginals(messages []abi.Message) []abi.Message { return withoutOriginals(messages) }
