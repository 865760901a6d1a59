package cost

import (
	"slices"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/cost/rule"
)

// Policy is the name under which a module offers this package.
const Policy = "cost"

// Bounds of the config.
const (
	MaxPrice  = 1_000_000
	MaxLifeMS = 24 * 3_600_000
	MaxSteps  = 10_000
	MaxMargin = 10_000
	maxRetry  = 3_600_000
)

// Decide answers the request.
func Decide(req *mortise.AdmitRequest) mortise.Decision {
	d := rule.Decide(req, terms(req.Config).Of(req, family(req.Config)))
	if !d.Allowed && d.Reason != mortise.ReasonNoPreparation {
		d.RetryAfterMS = min(max(0, mortise.IntOr(req.Config, "retry_after_ms", 0)), maxRetry)
	}
	return d
}

// terms reads the config; what is out of bounds counts as absent.
func terms(config any) rule.Terms {
	get := func(key string, most int64) int64 {
		if n := mortise.IntOr(config, key, 0); n > 0 && n <= most {
			return n
		}
		return 0
	}
	return rule.Terms{
		Read: get("read_per_mille", MaxPrice), Write: get("write_per_mille", MaxPrice), LifeMS: get("cache_life_ms", MaxLifeMS),
		SummarizerIn: get("summarizer_input_per_mille", MaxPrice), SummarizerOut: get("summarizer_output_per_mille", MaxPrice),
		Steps: get("remaining_steps", MaxSteps), Margin: get("margin_per_mille", MaxMargin),
		Gain: get("min_gain_per_mille", 1000), Growth: get("min_growth_per_mille", 1000), Force: get("force_per_mille", 1000),
	}
}

// family is the family of prices that the config names.
func family(config any) string {
	name := mortise.StringOr(config, "prices", "")
	if slices.Contains(rule.Families(), name) {
		return name
	}
	return ""
}
