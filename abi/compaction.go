package abi

// SummarizeRequest asks a summarizer to replace a range of a conversation.
type SummarizeRequest struct {
	ABI      int    `json:"abi"`
	ThreadID string `json:"thread_id"`
	// Policy is one of [Description.Policies]; empty is the module's default.
	Policy string `json:"policy,omitempty"`
	// Messages are the range, oldest first, calls and results whole.
	Messages []Message `json:"messages"`
	// PreviousSummary covers everything before the range. Nil means that
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
	// Ledger is the state of the conversation up to the end of the range, what came before the
	// range included. A host that keeps none leaves it out.
	Ledger *Ledger `json:"ledger,omitempty"`
	// Masking is for a policy that masks messages instead of writing a text. Nil means that the host
	// masks none.
	Masking *Masking `json:"masking,omitempty"`
}

// Masking is what a policy needs that masks messages.
type Masking struct {
	// ViewTokens is the size of the context, GoalTokens the size that is small enough.
	ViewTokens int64 `json:"view_tokens"`
	GoalTokens int64 `json:"goal_tokens"`
	// Masked are the masks of earlier compactions, which stay.
	Masked []Mask `json:"masked,omitempty"`
	// Never are the names of tools whose outputs are not masked.
	Never []string `json:"never,omitempty"`
}

// Mask shows the model a number in place of a tool output, or of the long arguments of a call that failed. The
// tool recall reads the original by that number.
type Mask struct {
	// MessageID is the message of the output, or the one with the call.
	MessageID string `json:"message_id"`
	// CallID is the call whose arguments are masked; empty for an output.
	CallID string     `json:"call_id,omitempty"`
	Reason MaskReason `json:"reason"`
	// By is the message that has the newer or the same content.
	By string `json:"by,omitempty"`
}

// MaskReason is why a message need not be read again.
type MaskReason string

// Reasons.
const (
	// MaskSuperseded is what was read again later.
	MaskSuperseded MaskReason = "superseded"
	// MaskDuplicate is an output that a later one repeats.
	MaskDuplicate MaskReason = "duplicate"
	// MaskInvalidated is a file that was changed after it was read.
	MaskInvalidated MaskReason = "invalidated"
	// MaskRefetchable is what the same call can read again.
	MaskRefetchable MaskReason = "refetchable"
	// MaskFailedInput is the arguments of a call that failed.
	MaskFailedInput MaskReason = "failed_input"
)

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
	// Unverified means that a model wrote the text. The host then holds it against the log: it strikes what
	// the log does not bear out, and adds what is missing within the budget.
	Unverified bool `json:"unverified,omitempty"`
	// Masks are messages of the request to mask, in place of a Text. The rest of the range stays as it is.
	Masks []Mask `json:"masks,omitempty"`
	// Declined is why the policy leaves the request to the next one; nothing else is set then.
	Declined string `json:"declined,omitempty"`
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
	// Requested means that a person or a plugin asked for the compaction, which may be below
	// the threshold.
	Requested bool `json:"requested,omitempty"`
	// LastStartMS is when the thread's latest compaction started, in milliseconds since 1970;
	// 0 means that none has.
	LastStartMS int64 `json:"last_start_ms,omitempty"`
	// Failures counts failures since the last success. BackoffRemainingMS is how long the host
	// would wait because of them; CooldownRemainingMS includes it.
	Failures           int64 `json:"failures,omitempty"`
	BackoffRemainingMS int64 `json:"backoff_remaining_ms,omitempty"`
	// Cache is absent before the thread's first inference, Cost when there is nothing to compact.
	Cache *CacheUse       `json:"cache,omitempty"`
	Cost  *CompactionCost `json:"cost,omitempty"`
}

// CacheUse is what a thread's latest inference took from the provider's prompt cache. A
// compaction makes the provider forget what follows the summary.
type CacheUse struct {
	// AtMS is when the inference ended, in milliseconds since 1970. Caches forget after minutes.
	AtMS int64 `json:"at_ms"`
	// PromptTokens is the whole prompt, with ReadTokens from the cache and WrittenTokens to it.
	PromptTokens  int64 `json:"prompt_tokens"`
	ReadTokens    int64 `json:"read_tokens,omitempty"`
	WrittenTokens int64 `json:"written_tokens,omitempty"`
	// Model is the provider's name of the model.
	Model string `json:"model,omitempty"`
	// ReadPerMille and WritePerMille are the prices of a token from the cache and to it, in thousandths of
	// that of fresh input; 0 where the price of the model is not known.
	ReadPerMille  int64 `json:"read_per_mille,omitempty"`
	WritePerMille int64 `json:"write_per_mille,omitempty"`
}

// CompactionCost is an estimate of what a compaction costs once, and saves in each later request.
// The summarizer's own questions to a model are not in it.
type CompactionCost struct {
	// SummaryTokens is the longest summary that would be accepted.
	SummaryTokens int64 `json:"summary_tokens"`
	// RewriteTokens follow the unchanged start of the context: the summary and what stays behind
	// it, which the provider has to read again once.
	RewriteTokens int64 `json:"rewrite_tokens"`
	// SavedTokens is by how much each later request is shorter.
	SavedTokens int64 `json:"saved_tokens"`
	// AfterTokens is the size of the context after the thread's latest compaction, 0 when there was none.
	AfterTokens int64 `json:"after_tokens,omitempty"`
	// RewriteMicros is what RewriteTokens cost more than they would from the cache, SavedMicros
	// what each later request costs less, at the cache's share of the latest inference. Both are
	// in millionths of the unit of the operator's prices, and 0 where the price is not known.
	RewriteMicros int64 `json:"rewrite_micros,omitempty"`
	SavedMicros   int64 `json:"saved_micros,omitempty"`
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
	// RetryAfterMS asks the host not to ask again before, for at most an hour; the answer holds
	// until then, unless another module takes the policy's place. It does not count in an answer
	// about a compaction that is pending.
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
