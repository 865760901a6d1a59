package llm_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// Each request is told of, with the model that was asked, how long it took, and
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
			Observe: func(c llm.Call) { calls = append(calls, c) },
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
