package quota

import (
	"strconv"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// Policy is the name under which a module offers this package.
const Policy = "quota"

const (
	defaultMaxAttempts = 100
	defaultCooldownMS  = 60_000
	defaultRetryMS     = 5_000
)

// settings are the request's numbers with the config applied.
type settings struct {
	maxAttempts, cooldownLeft, minRange, retry int64
	noMemory, noProvider, noQueue              bool
}

// resolve applies the config. A cooldown of the config counts from the latest start; from a host that
// does not give that, it moves the end of the host's cooldown by the difference. The wait after
// failures stays.
func resolve(req *mortise.AdmitRequest) settings {
	s := settings{
		maxAttempts: positive(mortise.IntOr(req.Config, "max_attempts", 0), positive(req.MaxAttempts, defaultMaxAttempts)),
		minRange:    mortise.IntOr(req.Config, "min_range_tokens", 0),
		retry:       positive(mortise.IntOr(req.Config, "retry_after_ms", 0), defaultRetryMS),
		noMemory:    mortise.BoolOr(req.Config, "ignore_memory", false),
		noProvider:  mortise.BoolOr(req.Config, "ignore_provider", false),
		noQueue:     mortise.BoolOr(req.Config, "ignore_queue", false),
	}
	s.cooldownLeft = max(0, req.CooldownRemainingMS)
	switch want := mortise.IntOr(req.Config, "cooldown_ms", -1); {
	case want < 0:
	case req.LastStartMS > 0:
		s.cooldownLeft = max(0, req.LastStartMS+want-req.NowMS, req.BackoffRemainingMS)
	case s.cooldownLeft > 0:
		s.cooldownLeft = max(0, s.cooldownLeft+want-positive(req.CooldownMS, defaultCooldownMS))
	}
	return s
}

func positive(n, def int64) int64 {
	if n > 0 {
		return n
	}
	return def
}

// Decide answers the request.
func Decide(req *mortise.AdmitRequest) mortise.Decision {
	s := resolve(req)
	switch {
	case req.Pending:
		return refuse(mortise.ReasonPending, "A compaction of this thread is still running.", s.retry)
	case req.AttemptCount >= s.maxAttempts:
		return refuse(mortise.ReasonAttemptLimit,
			"The session has used "+num(req.AttemptCount)+" of "+num(s.maxAttempts)+" attempts.", 0)
	case s.cooldownLeft > 0:
		return refuse(mortise.ReasonCooldown,
			"The next compaction may start in "+num(s.cooldownLeft)+" ms.", s.cooldownLeft)
	case req.TokensBefore == nil:
		return refuse(mortise.ReasonNoPreparation, "There is nothing to compact yet.", 0)
	case s.minRange > 0 && req.RangeTokens < s.minRange:
		return refuse(mortise.ReasonNoPreparation,
			"The range has "+num(req.RangeTokens)+" tokens, fewer than the "+num(s.minRange)+" that are worth a compaction.", 0)
	}
	if why := memoryPressure(req.Signals.Memory); why != "" && !s.noMemory {
		return refuse(mortise.ReasonMemoryPressure, why, s.retry)
	}
	if why := providerDegraded(req.Signals.Provider); why != "" && !s.noProvider {
		return refuse(mortise.ReasonProviderDegraded, why, s.retry)
	}
	if why := queueSaturated(req.Signals.Queue); why != "" && !s.noQueue {
		return refuse(mortise.ReasonQueueSaturated, why, s.retry)
	}
	return mortise.Decision{
		Allowed: true, Reason: mortise.ReasonAllowed,
		Detail: "Attempt " + num(req.AttemptCount+1) + " of " + num(s.maxAttempts) + " on " + num(*req.TokensBefore) + " tokens.",
	}
}

func refuse(reason, detail string, retry int64) mortise.Decision {
	return mortise.Decision{Reason: reason, Detail: detail, RetryAfterMS: retry}
}

func num(n int64) string { return strconv.FormatInt(n, 10) }

// memoryPressure returns why memory blocks, or nothing. Unknown free memory alone
// does not block.
func memoryPressure(m *mortise.MemorySignal) string {
	switch {
	case m == nil:
	case m.Pressure:
		return "The host reports memory pressure."
	case m.AvailableBytes != nil && *m.AvailableBytes < m.RequiredHeadroomBytes:
		return num(*m.AvailableBytes) + " bytes are available, " + num(m.RequiredHeadroomBytes) + " are required."
	}
	return ""
}

func providerDegraded(p *mortise.ProviderSignal) string {
	switch {
	case p == nil:
	case p.Degraded:
		return "The model provider is degraded."
	case p.Stale:
		return "There are no fresh samples of the model provider."
	case above(p.P95LatencyMS, p.MaxP95LatencyMS):
		return "The provider's p95 latency is " + num(*p.P95LatencyMS) + " ms, over " + num(*p.MaxP95LatencyMS) + " ms."
	case above(p.ErrorRatePerMille, p.MaxErrorRatePerMille):
		return "The provider fails " + num(*p.ErrorRatePerMille) + " of 1000 requests, over " + num(*p.MaxErrorRatePerMille) + "."
	}
	return ""
}

// above compares only what is known.
func above(n, limit *int64) bool { return n != nil && limit != nil && *n > *limit }

func queueSaturated(q *mortise.QueueSignal) string {
	switch {
	case q == nil:
	case q.Saturated:
		return "The host reports a saturated queue."
	case q.MaxQueuedRequests > 0 && q.QueuedRequests >= q.MaxQueuedRequests:
		return num(q.QueuedRequests) + " requests wait, the limit is " + num(q.MaxQueuedRequests) + "."
	}
	return ""
}
