package cost_test

import (
	"fmt"
	"math"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/cost"
)

func req(tokens, rng int64, config map[string]any) *mortise.AdmitRequest {
	return &mortise.AdmitRequest{TokensBefore: &tokens, RangeTokens: rng, WindowTokens: 200_000, Config: config}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	type config map[string]int64
	set := func(c config) map[string]any {
		out := map[string]any{}
		for key, n := range c {
			out[key] = n
		}
		return out
	}
	// p is 0.84 for a million; 85,000 tokens are saved in each of 20 steps: 1.428. The rest is
	// 35,000 tokens at 2.16 more, once: 0.0756.
	for name, tc := range map[string]struct {
		req    *mortise.AdmitRequest
		reason string
	}{
		"nothing to compact":             {&mortise.AdmitRequest{RangeTokens: 5}, "no_preparation"},
		"no range":                       {req(120_000, 0, nil), "no_preparation"},
		"worth it":                       {req(120_000, 100_000, nil), "allowed"},
		"nothing to pay":                 {req(120_000, 100_000, set(config{"input_price": 0})), "saves_too_little"},
		"a small range":                  {req(120_000, 5_000, nil), "saves_too_little"},
		"a dear summarizer":              {req(120_000, 100_000, set(config{"summarizer_input_price": 15_000_000, "summarizer_output_price": 75_000_000})), "saves_too_little"},
		"a dear summarizer, many steps":  {req(120_000, 100_000, set(config{"summarizer_input_price": 15_000_000, "summarizer_output_price": 75_000_000, "remaining_steps": 60})), "allowed"},
		"the last step":                  {req(120_000, 100_000, set(config{"remaining_steps": 1})), "saves_too_little"},
		"the last step, nothing cached":  {req(120_000, 100_000, set(config{"remaining_steps": 1, "cached_per_mille": 0})), "allowed"},
		"margin of a twentieth":          {req(120_000, 100_000, set(config{"margin_per_mille": 10_000})), "allowed"},
		"margin that is just not met":    {req(120_000, 100_000, set(config{"margin_per_mille": 10_000, "remaining_steps": 10})), "saves_too_little"},
		"the window is nearly full":      {req(170_000, 5_000, nil), "allowed"},
		"the window is nearly full, yet": {req(169_000, 5_000, nil), "saves_too_little"},
		"summaries as long as the range": {req(120_000, 100_000, set(config{"summary_per_mille": 1000})), "saves_too_little"},
		"cached price above the price":   {req(120_000, 100_000, set(config{"cached_price": 900_000_000})), "allowed"},
		"senseless config":               {req(120_000, 100_000, set(config{"input_price": -1, "remaining_steps": 0, "margin_per_mille": -5})), "allowed"},
		"absurd numbers":                 {req(math.MaxInt64, math.MaxInt64, set(config{"input_price": 1_000_000_000, "remaining_steps": 10_000, "summarizer_input_price": 1_000_000_000})), "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := cost.Decide(tc.req)
			if d.Reason != tc.reason || d.Allowed != (tc.reason == "allowed") || d.Detail == "" {
				t.Errorf("got %+v, want %s", d, tc.reason)
			}
		})
	}
}

// TestHostEstimate: the host's prices count, unless the config has some.
func TestHostEstimate(t *testing.T) {
	t.Parallel()
	estimate := mortise.CompactionCost{SummaryTokens: 1000, RewriteTokens: 30_000, SavedTokens: 80_000, RewriteMicros: 200_000, SavedMicros: 24_000}
	for name, tc := range map[string]struct {
		change func(*mortise.CompactionCost)
		config map[string]any
		reason string
	}{
		"worth it":              {nil, nil, "allowed"},
		"few steps":             {nil, map[string]any{"remaining_steps": int64(8)}, "saves_too_little"},
		"a dear rewrite":        {func(c *mortise.CompactionCost) { c.RewriteMicros = 481_000 }, nil, "saves_too_little"},
		"a dear summarizer":     {nil, map[string]any{"summarizer_input_price": int64(3_000_000)}, "saves_too_little"},
		"prices of the config":  {func(c *mortise.CompactionCost) { c.RewriteMicros = 481_000 }, map[string]any{"input_price": int64(3_000_000)}, "allowed"},
		"prices are not known":  {func(c *mortise.CompactionCost) { c.RewriteMicros, c.SavedMicros = 0, 0 }, nil, "allowed"},
		"nothing behind it all": {func(c *mortise.CompactionCost) { c.RewriteMicros = 0 }, map[string]any{"remaining_steps": int64(1)}, "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c := req(120_000, 100_000, tc.config), estimate
			if tc.change != nil {
				tc.change(&c)
			}
			r.Cost = &c
			if d := cost.Decide(r); d.Reason != tc.reason {
				t.Errorf("got %+v, want %s", d, tc.reason)
			}
		})
	}
}

// TestMonotone: more steps never make a compaction less worth, a dearer summarizer never more.
func TestMonotone(t *testing.T) {
	t.Parallel()
	for rng := int64(1000); rng < 100_000_000; rng *= 3 {
		worth := false
		for steps := int64(1); steps <= 10_000; steps *= 2 {
			now := cost.Decide(&mortise.AdmitRequest{TokensBefore: &rng, RangeTokens: rng / 2, Config: map[string]any{
				"remaining_steps": steps, "summarizer_input_price": int64(1_000_000_000), "input_price": int64(1_000_000_000),
			}}).Allowed
			if worth && !now {
				t.Errorf("range %d: worth it before, not with %d steps", rng, steps)
			}
			worth = now
		}
	}
}

func Example() {
	for _, steps := range []int64{1, 20} {
		d := cost.Decide(req(120_000, 100_000, map[string]any{"remaining_steps": steps}))
		fmt.Println(d.Reason, d.Detail)
	}
	// Output:
	// saves_too_little It saves about 71400 in 1 steps and costs about 75600, in millionths of money.
	// allowed It saves about 1428000 in 20 steps and costs about 75600, in millionths of money.
}
