package threshold_test

import (
	"fmt"
	"math"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/threshold"
)

func req(tokens, rng, window int64, config map[string]any) *mortise.AdmitRequest {
	return &mortise.AdmitRequest{TokensBefore: &tokens, RangeTokens: rng, WindowTokens: window, ThresholdTokens: 50_000, Config: config}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		req    *mortise.AdmitRequest
		reason string
	}{
		"nothing to compact":      {&mortise.AdmitRequest{WindowTokens: 1000}, "no_preparation"},
		"below the high mark":     {req(59_999, 50_000, 100_000, nil), "below_threshold"},
		"at the high mark":        {req(60_000, 50_000, 100_000, nil), "allowed"},
		"would stay high":         {req(60_000, 20_000, 100_000, nil), "little_to_gain"},
		"just at the low mark":    {req(60_000, 23_530, 100_000, nil), "allowed"},
		"just above the low mark": {req(60_000, 23_400, 100_000, nil), "little_to_gain"},
		"no range, full":          {req(70_000, 0, 100_000, nil), "little_to_gain"},
		"forced":                  {req(85_000, 0, 100_000, nil), "allowed"},
		"no window, enough":       {req(50_000, 0, 0, nil), "allowed"},
		"no window, too little":   {req(49_999, 0, -5, nil), "below_threshold"},
		"config high":             {req(45_000, 40_000, 100_000, map[string]any{"high_per_mille": int64(450)}), "allowed"},
		"config low":              {req(60_000, 20_000, 100_000, map[string]any{"low_per_mille": int64(500)}), "allowed"},
		"low above high":          {req(45_000, 0, 100_000, map[string]any{"high_per_mille": int64(450), "low_per_mille": int64(999)}), "allowed"},
		"force below high":        {req(59_000, 0, 100_000, map[string]any{"force_per_mille": int64(10)}), "below_threshold"},
		"long summaries":          {req(60_000, 50_000, 100_000, map[string]any{"summary_per_mille": int64(900)}), "little_to_gain"},
		"senseless config":        {req(60_000, 50_000, 100_000, map[string]any{"high_per_mille": int64(-4), "low_per_mille": "x"}), "allowed"},
		"absurd numbers":          {req(math.MaxInt64, math.MaxInt64, 1, nil), "allowed"},
		"negative numbers":        {req(-5, -5, 100_000, nil), "below_threshold"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := threshold.Decide(tc.req)
			if d.Reason != tc.reason || d.Allowed != (tc.reason == "allowed") || d.Detail == "" {
				t.Errorf("got %+v, want %s", d, tc.reason)
			}
		})
	}
}

// TestHysteresis runs a context that grows by 1 % of the window a step, of which the newest
// 20 % stay: between two compactions it has to grow again.
func TestHysteresis(t *testing.T) {
	t.Parallel()
	tokens, last := int64(0), -1
	for step := range 500 {
		tokens += 1000
		rng := max(0, tokens-20_000)
		if !threshold.Decide(req(tokens, rng, 100_000, nil)).Allowed {
			continue
		}
		if last >= 0 && step-last < 30 {
			t.Fatalf("step %d: compacted again after %d steps", step, step-last)
		}
		last = step
		tokens -= rng - rng*150/1000
	}
	if last < 400 {
		t.Errorf("the last compaction was at step %d", last)
	}
}

func Example() {
	for _, rng := range []int64{10_000, 45_000} {
		d := threshold.Decide(req(62_000, rng, 100_000, nil))
		fmt.Println(d.Reason, d.Detail)
	}
	// Output:
	// little_to_gain The context takes 620 per mille of the window and would take 535 after it, above the low mark of 400.
	// allowed The context takes 620 per mille of the window, and about 237 after it.
}
