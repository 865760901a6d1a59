package llm

import (
	"strings"
	"time"
)

// Kind is the class of a failed inference.
type Kind string

// Kinds. The first five may pass when asked again, see [Error.Retryable].
const (
	// KindProvider is a failure on the provider's side.
	KindProvider Kind = "provider"
	// KindRateLimited means that the caller asked too often.
	KindRateLimited Kind = "rate_limited"
	// KindOverloaded means that the provider has too much to do.
	KindOverloaded Kind = "overloaded"
	// KindTimeout means that no answer came in time.
	KindTimeout Kind = "timeout"
	// KindStreamInterrupted means that an answer broke off.
	KindStreamInterrupted Kind = "stream_interrupted"
	// KindContextOverflow means that the request exceeds the context window.
	KindContextOverflow Kind = "context_overflow"
	// KindInvalidRequest means that the request is wrong as it stands.
	KindInvalidRequest Kind = "invalid_request"
	// KindUnauthorized means that the credentials were refused.
	KindUnauthorized Kind = "unauthorized"
	// KindModelNotFound means that the provider does not know the model.
	KindModelNotFound Kind = "model_not_found"
	// KindContentFiltered means that the provider refused the content.
	KindContentFiltered Kind = "content_filtered"
	// KindAllModelsUnavailable means that neither the model nor a fallback may
	// be asked now.
	KindAllModelsUnavailable Kind = "all_models_unavailable"
	// KindCancelled means that the caller gave up.
	KindCancelled Kind = "cancelled"
)

// Error is a failed inference.
type Error struct {
	// Kind is the class; empty counts as [KindProvider].
	Kind Kind
	// Model is the one that was asked, if known.
	Model string
	// Message is what the provider said, in one line.
	Message string
	// RetryAfter is how long the provider asked to wait; 0 when it did not say.
	RetryAfter time.Duration
	// Err is the cause, if there is one.
	Err error
}

// Error returns kind, model, message and cause, as far as they are known.
func (e *Error) Error() string {
	if e == nil {
		return "llm: no error"
	}
	parts := []string{"llm: " + strings.ReplaceAll(string(e.kind()), "_", " ")}
	if e.Model != "" {
		parts[0] += " (model " + e.Model + ")"
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Retryable reports whether the same request may succeed later. A kind that is
// not known here is not retried.
func (e *Error) Retryable() bool {
	if e == nil {
		return false
	}
	switch e.kind() {
	case KindProvider, KindRateLimited, KindOverloaded, KindTimeout, KindStreamInterrupted:
		return true
	default:
		return false
	}
}

func (e *Error) kind() Kind {
	if e.Kind == "" {
		return KindProvider
	}
	return e.Kind
}
