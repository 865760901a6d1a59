package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/cost"
)

// AdmissionSchema names the JSON format of decisions and evidence.
const AdmissionSchema = "pi.compaction.admission.v1"

// Quota bounds the compactions of one thread. Zero fields take defaults.
type Quota struct {
	// Cooldown is the least time between two starts; none when 0. After failures
	// in a row it doubles with each, from 1 s on.
	Cooldown time.Duration
	// Timeout is how long a compaction may take, 120 s by default.
	Timeout time.Duration
	// MaxAttempts is how many may start without a success between them, 100 by
	// default.
	MaxAttempts int
	// Forget is how long after the last start the attempts no longer count, a day by
	// default: a limit that is never lifted would let the context grow for ever.
	Forget time.Duration
}

func (q Quota) withDefaults() (Quota, error) {
	if q.Cooldown < 0 || q.Timeout < 0 || q.MaxAttempts < 0 || q.Forget < 0 {
		return q, fmt.Errorf("compaction: Quota %+v: no field may be negative", q)
	}
	q.Timeout = cmp.Or(q.Timeout, 120*time.Second)
	q.MaxAttempts = cmp.Or(q.MaxAttempts, defaultAttempts)
	q.Forget = cmp.Or(q.Forget, 24*time.Hour)
	return q, nil
}

// maxBackoff bounds the cooldown that failures lead to.
const maxBackoff = 5 * time.Minute

// AdmissionDecision reports whether a compaction may start, and why. Its JSON is
// the schema of [AdmissionSchema].
type AdmissionDecision struct {
	Schema                string           `json:"schema"`
	Allowed               bool             `json:"allowed"`
	Reason                string           `json:"reason"`
	TokensBefore          *uint64          `json:"tokensBefore"`
	AttemptCount          uint32           `json:"attemptCount"`
	MaxAttemptsPerSession uint32           `json:"maxAttemptsPerSession"`
	CooldownRemainingMS   uint64           `json:"cooldownRemainingMs"`
	Signals               AdmissionSignals `json:"signals"`
}

// AdmissionSignals are what was known when a decision was taken; nil is unknown.
type AdmissionSignals struct {
	Memory   *MemorySignal   `json:"memory"`
	Provider *ProviderSignal `json:"provider"`
	Queue    *QueueSignal    `json:"queue"`
}

// MemorySignal is the JSON form of abi.MemorySignal.
type MemorySignal struct {
	AvailableBytes        *int64 `json:"availableBytes"`
	RequiredHeadroomBytes int64  `json:"requiredHeadroomBytes"`
	Pressure              bool   `json:"pressure"`
}

// ProviderSignal is the JSON form of abi.ProviderSignal.
type ProviderSignal struct {
	P95LatencyMS         *int64 `json:"p95LatencyMs"`
	MaxP95LatencyMS      *int64 `json:"maxP95LatencyMs"`
	ErrorRatePerMille    *int64 `json:"errorRatePerMille"`
	MaxErrorRatePerMille *int64 `json:"maxErrorRatePerMille"`
	Stale                bool   `json:"stale"`
	Degraded             bool   `json:"degraded"`
}

// QueueSignal is the JSON form of abi.QueueSignal.
type QueueSignal struct {
	QueuedRequests    int64 `json:"queuedRequests"`
	MaxQueuedRequests int64 `json:"maxQueuedRequests"`
	Saturated         bool  `json:"saturated"`
}

func signalsJSON(s abi.Signals) AdmissionSignals {
	var out AdmissionSignals
	if s.Memory != nil {
		out.Memory = (*MemorySignal)(s.Memory)
	}
	if s.Provider != nil {
		out.Provider = (*ProviderSignal)(s.Provider)
	}
	if s.Queue != nil {
		out.Queue = (*QueueSignal)(s.Queue)
	}
	return out
}

// Rules is the admission policy that decides by [Decide]. The bundled policy quota has the same
// rules, and a config.
type Rules struct{}

// Admit implements [Admitter]. It returns no error.
func (Rules) Admit(_ context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	reason := Decide(r)
	return &abi.Decision{Allowed: reason == abi.ReasonAllowed, Reason: reason}, nil
}

// Cost is the default admission policy: the rules of [Decide], and whether the compaction costs less than it
// saves, see package cost. The bundled policy cost has the same rules, and a config.
type Cost struct{}

// Admit implements [Admitter]. It returns no error.
func (Cost) Admit(_ context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	if reason := Decide(r); reason != abi.ReasonAllowed {
		return &abi.Decision{Reason: reason}, nil
	}
	d := cost.Decide(r, cost.Terms{}.Of(r, ""))
	return &d, nil
}

// defaultAttempts is how many compactions may start without a success between them.
const defaultAttempts = 100

// Decide applies the default rules to a request, in their order, and returns the
// first reason that holds.
func Decide(r *abi.AdmitRequest) string {
	most := r.MaxAttempts
	if most <= 0 {
		most = defaultAttempts
	}
	switch {
	case r.Pending:
		return abi.ReasonPending
	case r.AttemptCount >= most:
		return abi.ReasonAttemptLimit
	case r.CooldownRemainingMS > 0:
		return abi.ReasonCooldown
	case r.TokensBefore == nil:
		return abi.ReasonNoPreparation
	case memoryPressure(r.Signals.Memory):
		return abi.ReasonMemoryPressure
	case providerDegraded(r.Signals.Provider):
		return abi.ReasonProviderDegraded
	case queueSaturated(r.Signals.Queue):
		return abi.ReasonQueueSaturated
	}
	return abi.ReasonAllowed
}

func memoryPressure(m *abi.MemorySignal) bool {
	return m != nil && (m.Pressure || m.AvailableBytes != nil && *m.AvailableBytes < m.RequiredHeadroomBytes)
}

func providerDegraded(p *abi.ProviderSignal) bool {
	if p == nil {
		return false
	}
	over := func(v, limit *int64) bool { return v != nil && limit != nil && *v > *limit }
	return p.Degraded || p.Stale || over(p.P95LatencyMS, p.MaxP95LatencyMS) || over(p.ErrorRatePerMille, p.MaxErrorRatePerMille)
}

func queueSaturated(q *abi.QueueSignal) bool {
	return q != nil && (q.Saturated || q.MaxQueuedRequests > 0 && q.QueuedRequests >= q.MaxQueuedRequests)
}

// decision is what is recorded of a request.
func decision(r *abi.AdmitRequest, reason string) *AdmissionDecision {
	d := &AdmissionDecision{
		Schema: AdmissionSchema, Reason: reason, Allowed: reason == abi.ReasonAllowed, AttemptCount: uint32(r.AttemptCount),
		MaxAttemptsPerSession: uint32(r.MaxAttempts), CooldownRemainingMS: uint64(max(0, r.CooldownRemainingMS)),
		Signals: signalsJSON(r.Signals),
	}
	if r.TokensBefore != nil {
		tokens := uint64(max(0, *r.TokensBefore))
		d.TokensBefore = &tokens
	}
	return d
}

// admit asks the policy, unless it does not want to be asked yet. What the host keeps by itself is
// refused whatever the policy allows. The detail is for people. The duration is how long the policy
// does not want to be asked again.
func (c *Compactor) admit(ctx context.Context, q *query) (d *AdmissionDecision, detail string, retry time.Duration) {
	r, reason := q.request, abi.ReasonCooldown
	if !q.held {
		answer, err := c.askPolicy(ctx, r)
		switch {
		case err != nil:
			reason, detail = abi.ReasonPolicyUnavailable, err.Error()
		case !answer.Allowed:
			reason, detail = refusal(answer)
		default:
			reason, detail = abi.ReasonAllowed, answer.Detail
		}
		if answer != nil {
			retry = time.Duration(min(max(0, answer.RetryAfterMS), maxRetry.Milliseconds())) * time.Millisecond
		}
	}
	switch {
	case r.Pending && (reason == abi.ReasonAllowed || q.held):
		reason = abi.ReasonPending
	case r.TokensBefore == nil && reason == abi.ReasonAllowed:
		reason = abi.ReasonNoPreparation
	}
	return decision(r, reason), detail, retry
}

// askPolicy calls the policy; one that panics or says nothing is unavailable.
func (c *Compactor) askPolicy(ctx context.Context, r *abi.AdmitRequest) (answer *abi.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, fmt.Errorf("compaction: the admission policy panicked: %v", p)
		}
	}()
	answer, err = c.conf().Admitter.Admit(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, errors.New("compaction: the admission policy said nothing")
	}
	return answer, nil
}

// maxWord bounds a reason, in bytes.
const maxWord = 64

// refusal is the policy's reason, unless [CheckDecision] refuses it.
func refusal(answer *abi.Decision) (reason, detail string) {
	if err := CheckDecision(answer); err != nil {
		return abi.ReasonPolicyUnavailable, err.Error()
	}
	return answer.Reason, answer.Detail
}

// CheckDecision returns what is wrong with the answer of an admission policy. The reason of a
// refusal is a snake_case word, since reasons are counted and compared.
func CheckDecision(d *abi.Decision) error {
	strange := strings.ContainsFunc(d.Reason, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	switch {
	case d.Allowed:
	case d.Reason == "" || d.Reason == abi.ReasonAllowed:
		return errors.New("the policy refused without a reason")
	case strange || len(d.Reason) > maxWord:
		return fmt.Errorf("the policy's reason %.64q is no snake_case word", d.Reason)
	}
	return nil
}
