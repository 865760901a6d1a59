package llm

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Retry sets how often, and after what time, a [Client] asks again. Zero fields
// mean the default; a negative count means not at all.
type Retry struct {
	// MaxRetries of one model after the first attempt, 2.
	MaxRetries int `json:"max_retries"`
	// FallbackModels are asked in turn when the model does not answer.
	FallbackModels []string `json:"fallback_upstream_models"`
	// BackoffBaseMS is the first delay, 500, and that after an overloaded provider,
	// 2000. Each further one is twice as long, up to 8 s. A longer Retry-After wins, up
	// to MaxRetryAfter.
	BackoffBaseMS           int64 `json:"backoff_base_ms"`
	OverloadedBackoffBaseMS int64 `json:"overloaded_backoff_base_ms"`
	// MaxStreamRetries is how often a stream that broke off is resumed, 2.
	MaxStreamRetries int `json:"max_stream_retries"`
	// StreamIdleTimeoutSecs is how long a stream may say nothing, 60; twice that for
	// models that think first.
	StreamIdleTimeoutSecs int64 `json:"stream_idle_timeout_secs"`
	// RequestTimeoutSecs bounds a request that is not streamed, 600.
	RequestTimeoutSecs int64 `json:"request_timeout_secs"`
	// MaxContinuations is how often an answer that was cut at the output limit is
	// continued, 2.
	MaxContinuations int `json:"max_continuation_retries"`
}

const (
	maxBackoff = 8 * time.Second
	maxShift   = 16
	stallDelay = 200 * time.Millisecond
	// maxRetryAfter bounds what a provider may make a run wait. What it asks for
	// beyond that is an error that tells the time.
	maxRetryAfter = 15 * time.Minute
)

func (r Retry) withDefaults() (Retry, error) {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"BackoffBaseMS", r.BackoffBaseMS},
		{"OverloadedBackoffBaseMS", r.OverloadedBackoffBaseMS},
		{"StreamIdleTimeoutSecs", r.StreamIdleTimeoutSecs},
		{"RequestTimeoutSecs", r.RequestTimeoutSecs},
	} {
		if f.value < 0 {
			return r, fmt.Errorf("llm: Retry.%s is %d, must not be negative", f.name, f.value)
		}
	}
	r.MaxRetries = max(0, cmp.Or(r.MaxRetries, 2))
	r.MaxStreamRetries = max(0, cmp.Or(r.MaxStreamRetries, 2))
	r.MaxContinuations = max(0, cmp.Or(r.MaxContinuations, 2))
	r.BackoffBaseMS = cmp.Or(r.BackoffBaseMS, 500)
	r.OverloadedBackoffBaseMS = cmp.Or(r.OverloadedBackoffBaseMS, 2000)
	r.StreamIdleTimeoutSecs = cmp.Or(r.StreamIdleTimeoutSecs, 60)
	r.RequestTimeoutSecs = cmp.Or(r.RequestTimeoutSecs, 600)
	return r, nil
}

// Delay is how long to wait before retry n, which counts from 0, after err.
func (r Retry) Delay(n int, err *Error) time.Duration {
	base := cmp.Or(r.BackoffBaseMS, 500)
	if err != nil && err.Kind == KindOverloaded {
		base = cmp.Or(r.OverloadedBackoffBaseMS, 2000)
	}
	delay := maxBackoff
	if base < maxBackoff.Milliseconds() {
		delay = min(time.Duration(base)*time.Millisecond<<min(max(n, 0), maxShift), maxBackoff)
	}
	if err != nil {
		delay = max(delay, err.RetryAfter)
	}
	return delay
}

// idle is how long a stream of a model may say nothing.
func (r Retry) idle(req *Request) time.Duration {
	d := time.Duration(r.StreamIdleTimeoutSecs) * time.Second
	if thinks(req) {
		return 2 * d
	}
	return d
}

// thinks reports whether a model is known to think before it answers.
func thinks(r *Request) bool {
	if o := r.Override; o != nil && o.ReasoningEffort != nil && *o.ReasoningEffort != "" && *o.ReasoningEffort != "none" {
		return true
	}
	name := strings.ToLower(r.Model)
	for _, word := range []string{"thinking", "reasoning"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
