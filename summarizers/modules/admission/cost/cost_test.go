package cost_test

import (
	"fmt"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/cost"
)

func req(tokens, rng int64, config map[string]any) *mortise.AdmitRequest {
	return &mortise.AdmitRequest{TokensBefore: &tokens, RangeTokens: rng, WindowTokens: 200_000, ThresholdTokens: 100_000, Config: config}
}

// TestConfig: each key changes a decision, and a senseless value changes none.
func TestConfig(t *testing.T) {
	t.Parallel()
	// 100,000 of 120,000 tokens are summarized: 85,000 are saved, 35,000 are written anew.
	base := func(config map[string]any) *mortise.AdmitRequest { return req(120_000, 100_000, config) }
	grown := func(config map[string]any) *mortise.AdmitRequest {
		r := base(config)
		r.Cost = &mortise.CompactionCost{SummaryTokens: 4000, SavedTokens: 90_000, RewriteTokens: 25_000, AfterTokens: 95_000}
		return r
	}
	slow := func(config map[string]any) *mortise.AdmitRequest {
		r := base(config)
		r.NowMS, r.Cache = 1_000_000, &mortise.CacheUse{AtMS: 1}
		return r
	}
	for name, tc := range map[string]struct {
		req    *mortise.AdmitRequest
		reason string
	}{
		"worth it":                      {base(nil), "allowed"},
		"one step":                      {base(map[string]any{"remaining_steps": int64(1)}), "saves_too_little"},
		"one step of a cold cache":      {slow(map[string]any{"remaining_steps": int64(1)}), "allowed"},
		"a cache that lives longer":     {slow(map[string]any{"remaining_steps": int64(1), "cache_life_ms": int64(2_000_000)}), "saves_too_little"},
		"a family that lives longer":    {slow(map[string]any{"remaining_steps": int64(1), "prices": "anthropic_1h"}), "saves_too_little"},
		"no cache":                      {base(map[string]any{"remaining_steps": int64(1), "prices": "none"}), "allowed"},
		"a family that is not known":    {base(map[string]any{"remaining_steps": int64(1), "prices": "acme"}), "saves_too_little"},
		"reads that cost nothing much":  {base(map[string]any{"read_per_mille": int64(1)}), "saves_too_little"},
		"writes that cost too much":     {base(map[string]any{"write_per_mille": int64(100_000)}), "saves_too_little"},
		"a dear summarizer, input":      {base(map[string]any{"summarizer_input_per_mille": int64(5000)}), "saves_too_little"},
		"a dear summarizer, output":     {base(map[string]any{"summarizer_output_per_mille": int64(50_000)}), "saves_too_little"},
		"a large margin":                {base(map[string]any{"margin_per_mille": int64(10_000)}), "saves_too_little"},
		"a share that is not saved":     {base(map[string]any{"min_gain_per_mille": int64(800)}), "saves_too_little"},
		"grown enough":                  {grown(nil), "allowed"},
		"not grown enough":              {grown(map[string]any{"min_growth_per_mille": int64(300)}), "grown_too_little"},
		"the window is full, whatever":  {base(map[string]any{"remaining_steps": int64(1), "force_per_mille": int64(600)}), "allowed"},
		"senseless values":              {base(map[string]any{"remaining_steps": int64(-1), "margin_per_mille": int64(99_999_999), "min_gain_per_mille": int64(0)}), "allowed"},
		"nothing to compact":            {&mortise.AdmitRequest{RangeTokens: 5}, "no_preparation"},
		"numbers that are not integers": {base(map[string]any{"remaining_steps": 1.5}), "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := cost.Decide(tc.req)
			if d.Reason != tc.reason || d.Allowed != (tc.reason == "allowed") || d.Detail == "" {
				t.Errorf("got %+v, want %s", d, tc.reason)
			}
		})
	}
	r := base(map[string]any{"remaining_steps": int64(1), "retry_after_ms": int64(70)})
	if d := cost.Decide(r); d.RetryAfterMS != 70 {
		t.Errorf("got %+v", d)
	}
}

func Example() {
	for _, steps := range []int64{1, 20} {
		d := cost.Decide(req(120_000, 100_000, map[string]any{"remaining_steps": steps}))
		fmt.Println(d.Reason, d.Detail)
	}
	// Output:
	// saves_too_little It saves about 85000 of 120000 tokens: 8500 in 1 requests for 31750 now, in tokens of fresh input.
	// allowed It saves about 85000 of 120000 tokens: 170000 in 20 requests for 31750 now, in tokens of fresh input.
}
