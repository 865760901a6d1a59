package abi

// SummarizeRequest asks a summarizer to stand in for a range of a conversation.
type SummarizeRequest struct {
	ABI      int    `json:"abi"`
	ThreadID string `json:"thread_id"`
	// Policy is one of [Description.Policies]; empty is the module's default.
	Policy string `json:"policy,omitempty"`
	// Messages are the range, oldest first, calls and results whole.
	Messages []Message `json:"messages"`
	// PreviousSummary stands for everything before the range. Nil means that
	// nothing came before.
	PreviousSummary *string `json:"previous_summary,omitempty"`
	// BudgetTokens is how long the summary may be.
	BudgetTokens int64 `json:"budget_tokens"`
	// Focus is what the user or a plugin asked to keep in view.
	Focus string `json:"focus,omitempty"`
	// ReadFiles and ModifiedFiles were touched by tool calls, in this range or
	// before it, sorted.
	ReadFiles     []string `json:"read_files,omitempty"`
	ModifiedFiles []string `json:"modified_files,omitempty"`
	// LiveTasks are background tasks that the model must not forget.
	LiveTasks []string `json:"live_tasks,omitempty"`
	Config    any      `json:"config,omitempty"`
}

// Summary is what a summarizer answers.
type Summary struct {
	// Text replaces the range, previous summary included.
	Text string `json:"text"`
	// FromID and ToID are the first and last message that the text covers. When
	// given they must be those of the request.
	FromID string `json:"from_id,omitempty"`
	ToID   string `json:"to_id,omitempty"`
	// Policy is the one that wrote the text.
	Policy string `json:"policy,omitempty"`
}

// AdmitRequest asks an admission policy whether a compaction may start now.
type AdmitRequest struct {
	ABI      int    `json:"abi"`
	ThreadID string `json:"thread_id"`
	// Policy is one of [Description.Policies]; empty is the module's default.
	Policy string `json:"policy,omitempty"`
	// NowMS is the host's time in milliseconds since 1970; a guest has no clock.
	NowMS int64 `json:"now_ms"`
	// TokensBefore is the size of the context. Nil means that there is nothing
	// to compact.
	TokensBefore *int64 `json:"tokens_before,omitempty"`
	// RangeTokens is the size of what would be summarized.
	RangeTokens int64 `json:"range_tokens,omitempty"`
	// ThresholdTokens and WindowTokens come from the operator's config.
	ThresholdTokens     int64   `json:"threshold_tokens,omitempty"`
	WindowTokens        int64   `json:"window_tokens,omitempty"`
	Pending             bool    `json:"pending,omitempty"`
	AttemptCount        int64   `json:"attempt_count"`
	MaxAttempts         int64   `json:"max_attempts,omitempty"`
	CooldownMS          int64   `json:"cooldown_ms,omitempty"`
	CooldownRemainingMS int64   `json:"cooldown_remaining_ms,omitempty"`
	Signals             Signals `json:"signals"`
	Config              any     `json:"config,omitempty"`
}

// Signals are samples that the host took. An absent signal never blocks.
type Signals struct {
	Memory   *MemorySignal   `json:"memory,omitempty"`
	Provider *ProviderSignal `json:"provider,omitempty"`
	Queue    *QueueSignal    `json:"queue,omitempty"`
}

// MemorySignal is how much memory the process may still take, in bytes.
type MemorySignal struct {
	AvailableBytes        *int64 `json:"available_bytes,omitempty"`
	RequiredHeadroomBytes int64  `json:"required_headroom_bytes"`
	Pressure              bool   `json:"pressure,omitempty"`
}

// ProviderSignal is how a model provider has been answering.
type ProviderSignal struct {
	P95LatencyMS         *int64 `json:"p95_latency_ms,omitempty"`
	MaxP95LatencyMS      *int64 `json:"max_p95_latency_ms,omitempty"`
	ErrorRatePerMille    *int64 `json:"error_rate_per_mille,omitempty"`
	MaxErrorRatePerMille *int64 `json:"max_error_rate_per_mille,omitempty"`
	// Stale means that there are no fresh samples.
	Stale    bool `json:"stale,omitempty"`
	Degraded bool `json:"degraded,omitempty"`
}

// QueueSignal is how many requests wait; a maximum of 0 is no limit.
type QueueSignal struct {
	QueuedRequests    int64 `json:"queued_requests"`
	MaxQueuedRequests int64 `json:"max_queued_requests"`
	Saturated         bool  `json:"saturated,omitempty"`
}

// Decision is what an admission policy answers.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Reason is a snake_case word; "allowed" when allowed.
	Reason string `json:"reason"`
	// Detail is one sentence for people.
	Detail string `json:"detail,omitempty"`
	// RetryAfterMS asks the host not to ask again before.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// Reasons of the bundled admission policies.
const (
	ReasonAllowed           = "allowed"
	ReasonPending           = "pending"
	ReasonAttemptLimit      = "session_attempt_limit"
	ReasonCooldown          = "cooldown"
	ReasonNoPreparation     = "no_preparation"
	ReasonMemoryPressure    = "memory_pressure"
	ReasonProviderDegraded  = "provider_degraded"
	ReasonQueueSaturated    = "queue_saturated"
	ReasonBelowThreshold    = "below_threshold"
	ReasonPolicyUnavailable = "policy_unavailable"
	// ReasonVetoed is that of a plugin at before_compaction.
	ReasonVetoed = "vetoed"
)

// Compaction is what a hook around a compaction reads.
type Compaction struct {
	// ID is the same before and after.
	ID string `json:"id"`
	// Policy writes, or wrote, the summary.
	Policy string `json:"policy,omitempty"`
	// FromID and ToID are the first and last message that it replaces, Messages their
	// number.
	FromID   string `json:"from_id,omitempty"`
	ToID     string `json:"to_id,omitempty"`
	Messages int    `json:"messages,omitempty"`
	// TokensBefore is the size of the context, RangeTokens that of what is replaced.
	TokensBefore int64 `json:"tokens_before,omitempty"`
	RangeTokens  int64 `json:"range_tokens,omitempty"`
	// ThresholdTokens and WindowTokens come from the operator's config.
	ThresholdTokens int64 `json:"threshold_tokens,omitempty"`
	WindowTokens    int64 `json:"window_tokens,omitempty"`
	// Focus is what the user or a plugin asked to keep in view.
	Focus string `json:"focus,omitempty"`
	// Outcome is set at after_compaction, Reason when it is not [CompactionSwapped].
	Outcome CompactionOutcome `json:"outcome,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	// TokensAfter is the size of the context, Summary the text that replaced the range.
	TokensAfter int64  `json:"tokens_after,omitempty"`
	Summary     string `json:"summary,omitempty"`
	// Survival is the share of facts of the range that the summary holds, from 0 to 1: paths,
	// URLs, identifiers, numbers, errors. Lost are some of those that it does not hold.
	Survival *float64 `json:"survival,omitempty"`
	Lost     []string `json:"lost,omitempty"`
}

// CompactionOutcome is how a compaction ended.
type CompactionOutcome string

// Outcomes of a compaction.
const (
	// CompactionSwapped is a summary that replaced its range.
	CompactionSwapped CompactionOutcome = "swapped"
	// CompactionRefused is a summary that was not good enough, or out of date.
	CompactionRefused CompactionOutcome = "refused"
	// CompactionFailed is a summarizer that failed.
	CompactionFailed CompactionOutcome = "failed"
)
