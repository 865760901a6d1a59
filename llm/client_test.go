package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// turn is one attempt of a scripted model: deltas, then an error or the end.
type turn struct {
	deltas []llm.Delta
	err    error
	// hang waits for the context after the deltas; deaf does not even do that.
	hang bool
	deaf chan struct{}
}

// plain is a model without streaming, live one with it.
type plain struct {
	turns    []turn
	requests []llm.Request
}

func (p *plain) next(r llm.Request) turn {
	p.requests = append(p.requests, r)
	if len(p.requests) > len(p.turns) {
		return turn{err: &llm.Error{Kind: llm.KindInvalidRequest, Message: "the script is over"}}
	}
	return p.turns[len(p.requests)-1]
}

func (p *plain) Infer(ctx context.Context, r llm.Request) (*abi.Response, error) {
	turn := p.next(r)
	if turn.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if turn.err != nil {
		return nil, turn.err
	}
	out := &abi.Response{Model: r.Model, StopReason: abi.StopEndTurn}
	for _, d := range turn.deltas {
		switch d.Type {
		case llm.DeltaText:
			out.Message.Content = append(out.Message.Content, abi.Text(d.Text))
		case llm.DeltaUsage:
			out.Usage = d.Usage
		case llm.DeltaStop:
			out.StopReason = d.Stop
		default:
		}
	}
	return out, nil
}

type live struct{ plain }

func (l *live) Stream(ctx context.Context, r llm.Request, emit func(llm.Delta) bool) error {
	turn := l.next(r)
	for _, d := range turn.deltas {
		if !emit(d) {
			return ctx.Err()
		}
	}
	if turn.deaf != nil {
		<-turn.deaf
	}
	if turn.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return turn.err
}

func text(s string) llm.Delta { return llm.Delta{Type: llm.DeltaText, Text: s} }

func call(id, name string) llm.Delta {
	return llm.Delta{Type: llm.DeltaCallStart, CallID: id, Name: name}
}

func args(s string) llm.Delta { return llm.Delta{Type: llm.DeltaCallArguments, Text: s} }

func stop(r abi.StopReason) llm.Delta { return llm.Delta{Type: llm.DeltaStop, Stop: r} }

func block() llm.Delta { return llm.Delta{Type: llm.DeltaBlockStop} }

func bill(n int64) llm.Delta {
	return llm.Delta{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: n, CompletionTokens: 1}}
}

// asked is what one question came to.
type asked struct {
	llm.Answer
	err   error
	heard []llm.Delta
	took  time.Duration
}

func (a *asked) says() string {
	if a.Response == nil {
		return ""
	}
	return a.Response.Message.Text()
}

func (a *asked) types() string {
	var out []string
	for _, d := range a.heard {
		out = append(out, strings.TrimSpace(fmt.Sprint(d.Type, " ", d.CallID)))
	}
	return strings.Join(out, ",")
}

func ask(ctx context.Context, t *testing.T, cfg llm.ClientConfig, r llm.Request) asked {
	t.Helper()
	c, err := llm.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out asked
	start := time.Now()
	out.Answer, out.err = c.Ask(ctx, r, func(d llm.Delta) { out.heard = append(out.heard, d) })
	out.took = time.Since(start)
	return out
}

func overloaded() error  { return &llm.Error{Kind: llm.KindOverloaded} }
func interrupted() error { return &llm.Error{Kind: llm.KindStreamInterrupted} }

func TestDelay(t *testing.T) {
	t.Parallel()
	var r llm.Retry
	provider, busy := &llm.Error{}, &llm.Error{Kind: llm.KindOverloaded}
	for n, want := range []int64{500, 1000, 2000, 4000, 8000, 8000} {
		if got := r.Delay(n, provider); got.Milliseconds() != want {
			t.Errorf("retry %d after %v, want %d ms", n, got, want)
		}
	}
	if got := r.Delay(1, busy); got != 4*time.Second {
		t.Errorf("overloaded: %v", got)
	}
	if got := r.Delay(1<<40, provider); got != 8*time.Second {
		t.Errorf("retry of a large number after %v", got)
	}
	if got := r.Delay(0, &llm.Error{RetryAfter: time.Minute}); got != time.Minute {
		t.Errorf("Retry-After of a minute: %v", got)
	}
	if got := r.Delay(3, &llm.Error{RetryAfter: time.Second}); got != 4*time.Second {
		t.Errorf("Retry-After below the back-off: %v", got)
	}
}

func TestRetryAndFallback(t *testing.T) {
	t.Parallel()
	fail := turn{err: overloaded()}
	good := turn{deltas: []llm.Delta{text("fine"), bill(3)}}
	cases := map[string]struct {
		turns  []turn
		retry  llm.Retry
		over   *abi.InferenceOverride
		models string
		took   time.Duration
		says   string
	}{
		"second attempt":   {turns: []turn{fail, good}, models: "m m", took: 2 * time.Second, says: "fine"},
		"third attempt":    {turns: []turn{fail, fail, good}, models: "m m m", took: 6 * time.Second, says: "fine"},
		"no more attempts": {turns: []turn{fail, fail, fail}, models: "m m m", took: 6 * time.Second},
		"fallback in order": {
			turns: []turn{fail, fail, good}, retry: llm.Retry{MaxRetries: -1, FallbackModels: []string{"f1", "f2"}}, models: "m f1 f2", says: "fine",
		},
		"fallback gets the same retries": {
			turns: []turn{fail, fail, fail, good}, retry: llm.Retry{MaxRetries: 1, FallbackModels: []string{"f1"}}, models: "m m f1 f1",
			took: 4 * time.Second, says: "fine",
		},
		"override replaces model and fallbacks": {
			turns: []turn{fail, good}, retry: llm.Retry{MaxRetries: -1, FallbackModels: []string{"f1"}},
			over: &abi.InferenceOverride{Model: new("o"), FallbackModels: []string{"o1"}}, models: "o o1", says: "fine",
		},
		"not retryable": {
			turns: []turn{{err: &llm.Error{Kind: llm.KindUnauthorized}}, good}, retry: llm.Retry{FallbackModels: []string{"f1"}}, models: "m",
		},
		"not a provider's error": {turns: []turn{{err: errors.New("odd")}, good}, models: "m"},
		"retry after": {
			turns: []turn{{err: &llm.Error{Kind: llm.KindRateLimited, RetryAfter: 20 * time.Second}}, good}, models: "m m", took: 20 * time.Second, says: "fine",
		},
		"retry after beyond all patience": {
			turns: []turn{{err: &llm.Error{Kind: llm.KindRateLimited, RetryAfter: 24 * time.Hour}}, good}, models: "m",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &plain{turns: c.turns}
				got := ask(t.Context(), t, llm.ClientConfig{Model: m, Retry: c.retry}, llm.Request{Model: "m", Override: c.over})
				var models []string
				for _, r := range m.requests {
					models = append(models, r.Model)
				}
				if strings.Join(models, " ") != c.models || got.took != c.took || got.says() != c.says || (got.err == nil) != (c.says != "") {
					t.Errorf("asked %v in %v, answer %q, error %v", models, got.took, got.says(), got.err)
				}
				if got.Requests != len(m.requests) {
					t.Errorf("counted %d requests of %d", got.Requests, len(m.requests))
				}
			})
		})
	}
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b, err := llm.NewBreaker(llm.BreakerConfig{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	failure := &llm.Error{}
	for i := range 5 {
		if !b.Allow("m") {
			t.Fatalf("open after %d failures", i)
		}
		b.Report("m", failure)
	}
	if b.Allow("m") || !b.Allow("other") {
		t.Error("after five failures the model is asked, or another one is not")
	}
	now = now.Add(30 * time.Second)
	if !b.Allow("m") || b.Allow("m") {
		t.Error("after the cool-down not exactly one may try")
	}
	b.Report("m", failure)
	if b.Allow("m") {
		t.Error("closed after a failed trial")
	}
	now = now.Add(30 * time.Second)
	if !b.Allow("m") {
		t.Error("no second trial")
	}
	b.Report("m", nil)
	if first, second := b.Allow("m"), b.Allow("m"); !first || !second {
		t.Error("open after a trial that went well")
	}
}

func TestOpenCircuits(t *testing.T) {
	t.Parallel()
	b, err := llm.NewBreaker(llm.BreakerConfig{Failures: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.Report("m", &llm.Error{})
	m := &plain{turns: []turn{{deltas: []llm.Delta{text("fine")}}}}
	got := ask(t.Context(), t, llm.ClientConfig{Model: m, Breaker: b}, llm.Request{Model: "m"})
	failure, _ := errors.AsType[*llm.Error](got.err)
	if failure == nil || failure.Kind != llm.KindAllModelsUnavailable || !strings.Contains(got.err.Error(), "circuit breakers open") || len(m.requests) != 0 {
		t.Errorf("error %v after %d requests", got.err, len(m.requests))
	}
}

func TestRequestIsBoundedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &plain{turns: []turn{{hang: true}}}
		got := ask(t.Context(), t, llm.ClientConfig{Model: m, Retry: llm.Retry{MaxRetries: -1, RequestTimeoutSecs: 30}}, llm.Request{})
		failure, _ := errors.AsType[*llm.Error](got.err)
		if failure == nil || failure.Kind != llm.KindTimeout || got.took != 30*time.Second {
			t.Errorf("error %v after %v", got.err, got.took)
		}
	})
}
