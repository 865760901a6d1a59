package cost

import (
	"strconv"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// Policy is the name under which a module offers this package.
const Policy = "cost"

// ReasonSavesTooLittle means that the compaction would cost more than it saves.
const ReasonSavesTooLittle = "saves_too_little"

// Defaults. Prices are in millionths of the unit of money for a million tokens; the
// summarizer costs nothing, as extract and mask do.
const (
	DefaultInput   = 3_000_000
	DefaultCached  = 300_000
	DefaultHits    = 800
	DefaultSteps   = 20
	DefaultSummary = 150
	DefaultMargin  = 1000
	DefaultForce   = 850
)

// Bounds, so that nothing overflows.
const (
	maxPrice  = 1_000_000_000
	maxTokens = 100_000_000
	maxSteps  = 10_000
	maxMargin = 10_000
	million   = 1_000_000
)

// terms are the config.
type terms struct {
	input, cached, hits, writeIn, writeOut int64
	steps, summary, margin, force, retry   int64
}

func resolve(config any) terms {
	get := func(key string, def, least, most int64) int64 {
		if n := mortise.IntOr(config, key, def); n >= least && n <= most {
			return n
		}
		return def
	}
	t := terms{
		input: get("input_price", DefaultInput, 0, maxPrice), cached: get("cached_price", DefaultCached, 0, maxPrice),
		hits:    get("cached_per_mille", DefaultHits, 0, 1000),
		writeIn: get("summarizer_input_price", 0, 0, maxPrice), writeOut: get("summarizer_output_price", 0, 0, maxPrice),
		steps: get("remaining_steps", DefaultSteps, 1, maxSteps), summary: get("summary_per_mille", DefaultSummary, 1, 1000),
		margin: get("margin_per_mille", DefaultMargin, 1, maxMargin), force: get("force_per_mille", DefaultForce, 1, 1000),
		retry: get("retry_after_ms", 0, 0, 3_600_000),
	}
	t.cached = min(t.cached, t.input)
	return t
}

// Decide answers the request.
func Decide(req *mortise.AdmitRequest) mortise.Decision {
	if req.TokensBefore == nil || req.RangeTokens <= 0 {
		return mortise.Decision{Reason: mortise.ReasonNoPreparation, Detail: "There is nothing to compact yet."}
	}
	t := resolve(req.Config)
	before := clamp(*req.TokensBefore)
	if window := clamp(req.WindowTokens); window > 0 && before*1000/window >= t.force {
		return mortise.Decision{Allowed: true, Reason: mortise.ReasonAllowed, Detail: "The context takes " + num(before*1000/window) + " per mille of the window, past the force mark of " + num(t.force) + "."}
	}
	saving, cost := t.weigh(before, min(clamp(req.RangeTokens), before))
	if mortise.IntOr(req.Config, "input_price", -1) < 0 && req.Cost != nil && req.Cost.SavedMicros > 0 {
		saving, cost = t.byHost(req.Cost, clamp(req.RangeTokens))
	}
	detail := "It saves about " + num(saving) + " in " + num(t.steps) + " steps and costs about " + num(cost) + ", in millionths of money."
	if saving*1000 < cost*t.margin || saving == 0 {
		return mortise.Decision{Reason: ReasonSavesTooLittle, Detail: detail, RetryAfterMS: t.retry}
	}
	return mortise.Decision{Allowed: true, Reason: mortise.ReasonAllowed, Detail: detail}
}

// weigh returns what a compaction saves and costs, in millionths of the unit of money.
func (t *terms) weigh(before, rng int64) (saving, cost int64) {
	summary := (rng*t.summary + 999) / 1000
	p := (t.input*(1000-t.hits) + t.cached*t.hits) / 1000
	saving = (rng - summary) * p / million * t.steps
	cost = up(rng*t.writeIn) + up(summary*t.writeOut) + up((before-rng+summary)*(t.input-p))
	return saving, cost
}

// byHost is weigh with the host's estimate, which knows the prices and the cache of the latest inference.
func (t *terms) byHost(c *mortise.CompactionCost, rng int64) (saving, cost int64) {
	saving = clamp(c.SavedMicros) * t.steps
	return saving, clamp(c.RewriteMicros) + up(rng*t.writeIn) + up(clamp(c.SummaryTokens)*t.writeOut)
}

// up divides by a million, rounded up.
func up(n int64) int64 { return (n + million - 1) / million }

func clamp(n int64) int64 { return min(max(0, n), maxTokens) }

func num(n int64) string { return strconv.FormatInt(n, 10) }
