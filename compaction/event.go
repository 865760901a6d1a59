package compaction

import "time"

// EventKind is what happened.
type EventKind string

// Kinds of events.
const (
	// EventAdmission: a decision was taken, see Decision.
	EventAdmission EventKind = "admission"
	// EventStarted: a summarizer was spawned.
	EventStarted EventKind = "started"
	// EventSwapped: a summary replaces the range now, or parts of it are masked. With a Reason, it came about
	// in another way than was asked for: see [Note].
	EventSwapped EventKind = "swapped"
	// EventRefused: the quality gate refused a summary, for Reason.
	EventRefused EventKind = "refused"
	// EventFailed: a compaction failed, for Reason.
	EventFailed EventKind = "failed"
	// EventFallback: the window is exceeded, older rounds are left out.
	EventFallback EventKind = "fallback"
	// EventRecovered: a process ended with a compaction under way, for Reason.
	EventRecovered EventKind = "recovered"
	// EventBreaker: the summarizer failed so often that the fallback writes for a
	// while.
	EventBreaker EventKind = "breaker"
	// EventUndone: a compaction was taken back.
	EventUndone EventKind = "undone"
	// EventStale: a result came that no run waits for any more.
	EventStale EventKind = "stale"
)

// Event is what happened to a thread's compactions.
type Event struct {
	Kind   EventKind `json:"kind"`
	Thread string    `json:"thread"`
	At     time.Time `json:"at"`
	TaskID string    `json:"task_id,omitempty"`
	// Decision belongs to admissions. Equal refusals in a row are reported once at
	// first, and then, when something else is decided, in one event more with the
	// newest of them; Count is how many that one includes. 0 is one.
	Decision *AdmissionDecision `json:"decision,omitempty"`
	Count    int                `json:"count,omitempty"`
	Policy   string             `json:"policy,omitempty"`
	// AttemptID names the reservation, and the marker that came of it; Attempt
	// counts starts since the last success. Model is whose context is compacted.
	AttemptID string `json:"attempt_id,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Model     string `json:"model,omitempty"`
	FromID    string `json:"from_id,omitempty"`
	ToID      string `json:"to_id,omitempty"`
	// PreTokens and PostTokens are the sizes of the view before and after a swap.
	PreTokens  int64 `json:"pre_tokens,omitempty"`
	PostTokens int64 `json:"post_tokens,omitempty"`
	// Messages is how many messages the summary replaces, ViewMessages how many
	// the view has after the swap.
	Messages     int `json:"messages,omitempty"`
	ViewMessages int `json:"view_messages,omitempty"`
	// Masked is how many outputs and inputs were masked instead.
	Masked  int      `json:"masked,omitempty"`
	Quality *Quality `json:"quality,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	// Permanent means that trying again as before will not help.
	Permanent bool `json:"permanent,omitempty"`
	// StepsMeanwhile counts how often the run asked while the compaction was under
	// way: it did not wait.
	StepsMeanwhile int           `json:"steps_meanwhile,omitempty"`
	Duration       time.Duration `json:"duration_ns,omitempty"`
}
