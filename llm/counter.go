package llm

import (
	"context"
	"errors"
)

// ErrNoCount means that the provider does not count tokens before it bills them.
var ErrNoCount = errors.New("the provider does not count tokens")

// Counter is what a [Model] may have as well: it counts the tokens of a request as its
// provider would bill them.
type Counter interface {
	// CountTokens returns the prompt tokens of r. ErrNoCount means that the provider has no
	// such endpoint.
	CountTokens(ctx context.Context, r Request) (int64, error)
}
