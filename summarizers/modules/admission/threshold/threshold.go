package threshold

import (
	"strconv"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// Policy is the name under which a module offers this package.
const Policy = "threshold"

// ReasonLittleToGain means that the context would stay above the low mark.
const ReasonLittleToGain = "little_to_gain"

// Defaults, in thousandths.
const (
	DefaultHigh    = 600
	DefaultLow     = 400
	DefaultForce   = 850
	DefaultSummary = 150
)

// marks are the config.
type marks struct{ high, low, force, summary, retry int64 }

func resolve(config any) marks {
	share := func(key string, def int64) int64 {
		if n := mortise.IntOr(config, key, def); n >= 1 && n <= 1000 {
			return n
		}
		return def
	}
	m := marks{
		high: share("high_per_mille", DefaultHigh), low: share("low_per_mille", DefaultLow),
		force: share("force_per_mille", DefaultForce), summary: share("summary_per_mille", DefaultSummary),
		retry: max(0, mortise.IntOr(config, "retry_after_ms", 0)),
	}
	m.low, m.force = min(m.low, m.high), max(m.force, m.high)
	return m
}

// Decide answers the request.
func Decide(req *mortise.AdmitRequest) mortise.Decision {
	if req.TokensBefore == nil {
		return mortise.Decision{Reason: mortise.ReasonNoPreparation, Detail: "There is nothing to compact yet."}
	}
	m := resolve(req.Config)
	tokens, window := max(0, *req.TokensBefore), req.WindowTokens
	if window <= 0 {
		return withoutWindow(tokens, req.ThresholdTokens, m.retry)
	}
	used := perMille(tokens, window)
	after := used
	if r := min(max(0, req.RangeTokens), tokens); r > 0 {
		after = perMille(tokens-r+part(r, m.summary), window)
	}
	is := "The context takes " + num(used) + " per mille of the window"
	switch {
	case used >= m.force:
		return mortise.Decision{Allowed: true, Reason: mortise.ReasonAllowed, Detail: is + ", past the force mark of " + num(m.force) + "."}
	case used < m.high:
		return mortise.Decision{Reason: mortise.ReasonBelowThreshold, Detail: is + ", below the high mark of " + num(m.high) + ".", RetryAfterMS: m.retry}
	case after > m.low:
		return mortise.Decision{
			Reason: ReasonLittleToGain, RetryAfterMS: m.retry,
			Detail: is + " and would take " + num(after) + " after it, above the low mark of " + num(m.low) + ".",
		}
	}
	return mortise.Decision{Allowed: true, Reason: mortise.ReasonAllowed, Detail: is + ", and about " + num(after) + " after it."}
}

// withoutWindow goes by the host's threshold.
func withoutWindow(tokens, threshold, retry int64) mortise.Decision {
	if tokens < threshold {
		return mortise.Decision{Reason: mortise.ReasonBelowThreshold, Detail: "The context has " + num(tokens) + " tokens, the threshold is " + num(threshold) + ".", RetryAfterMS: retry}
	}
	return mortise.Decision{Allowed: true, Reason: mortise.ReasonAllowed, Detail: "The context has reached the threshold of " + num(threshold) + " tokens; the window is not known."}
}

// perMille is n in thousandths of a whole, rounded down, without overflow.
func perMille(n, whole int64) int64 {
	if n > 1<<53 {
		return 1 << 20
	}
	return n * 1000 / whole
}

// part is so many thousandths of n.
func part(n, perMille int64) int64 { return n/1000*perMille + n%1000*perMille/1000 }

func num(n int64) string { return strconv.FormatInt(n, 10) }
