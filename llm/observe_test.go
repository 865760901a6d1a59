package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// Each request is observed, with the model that was asked, how long it took, and
// whether it was the provider's fault that it failed.
func TestObserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls []llm.Call
		model := &plain{turns: []turn{
			{err: &llm.Error{Kind: llm.KindOverloaded}},
			{hang: true},
			{deltas: []llm.Delta{{Type: llm.DeltaText, Text: "yes"}}},
			{err: &llm.Error{Kind: llm.KindInvalidRequest}},
			{err: errors.New("strange")},
		}}
		c, err := llm.NewClient(llm.ClientConfig{
			Model: model, Retry: llm.Retry{MaxRetries: 1, FallbackModels: []string{"second"}, RequestTimeoutSecs: 30},
			Observe: ended(func(c llm.Call) { calls = append(calls, c) }),
		})
		if err != nil {
			t.Fatal(err)
		}
		request := llm.Request{Model: "first", Messages: []abi.Message{{Role: abi.RoleUser}}}
		for i := range 3 {
			if _, err := c.Ask(t.Context(), request, nil); (err == nil) != (i == 0) {
				t.Errorf("question %d: %v", i, err)
			}
		}
		want := []struct {
			model  string
			failed bool
			fault  bool
			took   time.Duration
		}{
			{"first", true, true, 0},
			{"first", true, true, 30 * time.Second},
			{"second", false, false, 0},
			{"first", true, false, 0},
			{"first", true, false, 0},
		}
		if len(calls) != len(want) {
			t.Fatalf("told of %+v", calls)
		}
		for i, w := range want {
			if c := calls[i]; c.Model != w.model || (c.Err != nil) != w.failed || c.Fault() != w.fault || c.Took != w.took {
				t.Errorf("call %d: told of %+v, fault %v", i, c, c.Fault())
			}
		}
	})
}

// ended observes what requests came to.
func ended(f func(llm.Call)) llm.Observe {
	return func(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) { return ctx, f }
}

// TestCall: a call has who asked, the model that answered, what it billed, also of a stream that broke off, and what that cost.
func TestCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var began, calls []llm.Call
		model := &live{plain{turns: []turn{
			{deltas: []llm.Delta{
				{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: 100, CompletionTokens: 1}}, {Type: llm.DeltaText, Text: "Hel"},
			}, err: &llm.Error{Kind: llm.KindStreamInterrupted}},
			{deltas: []llm.Delta{
				{Type: llm.DeltaText, Text: "lo"},
				{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: 110, CompletionTokens: 2, CacheReadTokens: 90}},
				{Type: llm.DeltaStop, Stop: abi.StopEndTurn, Name: "first-2026"},
			}},
		}}}
		c, err := llm.NewClient(llm.ClientConfig{
			Model: model, Cost: func(model string, u abi.Usage) float64 { return float64(u.PromptTokens) / float64(len(model)) },
			Observe: func(ctx context.Context, c llm.Call) (context.Context, func(llm.Call)) {
				began = append(began, c)
				return ctx, func(c llm.Call) { calls = append(calls, c) }
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		request := llm.Request{ThreadID: "t", RunID: "r", AgentID: "a", Step: 3, Model: "first", Messages: []abi.Message{{Role: abi.RoleUser}}}
		if _, err := c.Ask(t.Context(), request, nil); err != nil {
			t.Fatal(err)
		}
		if len(calls) != 2 || len(began) != 2 {
			t.Fatalf("observed %+v and %+v", began, calls)
		}
		if b := began[1]; b != (llm.Call{ThreadID: "t", RunID: "r", AgentID: "a", Step: 3, Model: "first"}) {
			t.Errorf("began with %+v", b)
		}
		one, two := calls[0], calls[1]
		if one.Usage != (abi.Usage{PromptTokens: 100, CompletionTokens: 1}) || one.Kind() != llm.KindStreamInterrupted || one.Cost != 20 {
			t.Errorf("the answer that broke off: %+v", one)
		}
		if two.Usage != (abi.Usage{PromptTokens: 110, CompletionTokens: 2, CacheReadTokens: 90}) || two.Kind() != "" || two.Cost != 11 ||
			two.ResponseModel != "first-2026" || two.Stop != abi.StopEndTurn || two.AgentID != "a" {
			t.Errorf("the rest of the answer: %+v", two)
		}
	})
}

// TestWatched: a model that is asked without a Client is observed as well.
func TestWatched(t *testing.T) {
	t.Parallel()
	var calls []llm.Call
	m := llm.Watched(&plain{turns: []turn{{deltas: []llm.Delta{{Type: llm.DeltaText, Text: "yes"}}}, {err: errors.New("strange")}}},
		ended(func(c llm.Call) { calls = append(calls, c) }), func(string, abi.Usage) float64 { return 7 })
	for range 2 {
		_, _ = m.Infer(t.Context(), llm.Request{Model: "m"})
	}
	if len(calls) != 2 || calls[0].Err != nil || calls[0].Model != "m" || calls[0].Cost != 7 || calls[1].Kind() != llm.KindProvider {
		t.Errorf("observed %+v", calls)
	}
}
