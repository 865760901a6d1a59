package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/llm"
)

func TestErrorRetryable(t *testing.T) {
	t.Parallel()
	want := map[llm.Kind]bool{
		"":                            true,
		llm.KindProvider:              true,
		llm.KindRateLimited:           true,
		llm.KindOverloaded:            true,
		llm.KindTimeout:               true,
		llm.KindStreamInterrupted:     true,
		llm.KindContextOverflow:       false,
		llm.KindInvalidRequest:        false,
		llm.KindUnauthorized:          false,
		llm.KindModelNotFound:         false,
		llm.KindContentFiltered:       false,
		llm.KindAllModelsUnavailable:  false,
		llm.KindCancelled:             false,
		llm.Kind("not in this table"): false,
	}
	for kind, retry := range want {
		e := &llm.Error{Kind: kind}
		if e.Retryable() != retry {
			t.Errorf("kind %q: Retryable() = %v, want %v", kind, e.Retryable(), retry)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  *llm.Error
		want string
	}{
		{&llm.Error{}, "llm: provider"},
		{&llm.Error{Kind: llm.KindRateLimited, Model: "m1", RetryAfter: time.Second}, "llm: rate limited (model m1)"},
		{&llm.Error{Kind: llm.KindTimeout, Message: "no bytes for 60s"}, "llm: timeout: no bytes for 60s"},
		{&llm.Error{Kind: llm.KindProvider, Model: "m1", Message: "500", Err: io.ErrUnexpectedEOF}, "llm: provider (model m1): 500: unexpected EOF"},
		{nil, "llm: no error"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}

func TestErrorUnwrap(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("step 3: %w", &llm.Error{Kind: llm.KindCancelled, Err: context.Canceled})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("errors.Is(%v, context.Canceled) = false", err)
	}
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindCancelled {
		t.Errorf("errors.As found %+v", e)
	}
	var none *llm.Error
	if none.Unwrap() != nil || none.Retryable() {
		t.Error("a nil Error has a cause or is retryable")
	}
}
