package offer

import (
	"maps"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/cost"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/cost/rule"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/quota"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/threshold"
)

// Quota is package quota as a policy.
func Quota() Offer {
	count := map[string]any{"type": "integer", "minimum": int64(1)}
	flag := map[string]any{"type": "boolean", "default": false}
	return Offer{
		Name: quota.Policy, Summary: "By quota, cooldown and the load of memory, provider and queue.", Decide: quota.Decide,
		Properties: map[string]any{
			"max_attempts":     count,
			"cooldown_ms":      map[string]any{"type": "integer", "minimum": int64(0)},
			"min_range_tokens": count,
			"ignore_memory":    flag,
			"ignore_provider":  flag,
			"ignore_queue":     flag,
			"retry_after_ms":   map[string]any{"type": "integer", "minimum": int64(0), "maximum": int64(3_600_000)},
		},
	}
}

// within is a policy that is asked when the quota allows, with the config of both.
func within(o Offer) Offer {
	own, q := o.Decide, Quota()
	o.Decide = func(req *mortise.AdmitRequest) mortise.Decision {
		if d := q.Decide(req); !d.Allowed {
			return d
		}
		return own(req)
	}
	maps.Copy(o.Properties, q.Properties)
	return o
}

// Threshold is package threshold as a policy, within the quota.
func Threshold() Offer {
	return within(Offer{
		Name: threshold.Policy, Summary: "By the share of the window, with hysteresis.", Decide: threshold.Decide,
		Properties: map[string]any{
			"high_per_mille":    integer(1, 1000, threshold.DefaultHigh),
			"low_per_mille":     integer(1, 1000, threshold.DefaultLow),
			"force_per_mille":   integer(1, 1000, threshold.DefaultForce),
			"summary_per_mille": integer(1, 1000, threshold.DefaultSummary),
		},
	})
}

// Cost is package cost as a policy, within the quota.
func Cost() Offer {
	families := []any{}
	for _, name := range rule.Families() {
		families = append(families, name)
	}
	price := map[string]any{"type": "integer", "minimum": int64(1), "maximum": int64(cost.MaxPrice)}
	return within(Offer{
		Name: cost.Policy, Summary: "By whether it saves more than it costs.", Decide: cost.Decide,
		Properties: map[string]any{
			"prices":                      map[string]any{"type": "string", "enum": families},
			"read_per_mille":              price,
			"write_per_mille":             price,
			"cache_life_ms":               map[string]any{"type": "integer", "minimum": int64(1), "maximum": int64(cost.MaxLifeMS)},
			"summarizer_input_per_mille":  integer(0, cost.MaxPrice, 0),
			"summarizer_output_per_mille": integer(0, cost.MaxPrice, 0),
			"remaining_steps":             integer(1, cost.MaxSteps, rule.DefaultSteps),
			"margin_per_mille":            integer(1, cost.MaxMargin, rule.DefaultMargin),
			"min_gain_per_mille":          integer(1, 1000, rule.DefaultGain),
			"min_growth_per_mille":        integer(1, 1000, rule.DefaultGrowth),
			"force_per_mille":             integer(1, 1000, rule.DefaultForce),
		},
	})
}

func integer(least, most, def int64) map[string]any {
	return map[string]any{"type": "integer", "minimum": least, "maximum": most, "default": def}
}
