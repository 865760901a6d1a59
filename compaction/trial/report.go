package trial

import (
	"fmt"
	"time"
)

// Report is what a trial found.
type Report struct {
	// Requests are those that were tried, newest first. Skipped counts others, for which there was no time, or
	// which would have asked a model too often.
	Requests []Compared `json:"requests"`
	Skipped  int        `json:"skipped,omitempty"`
	// Sample means that no request was recorded, so that the policies were tried on a built-in one.
	Sample bool `json:"sample,omitempty"`
	// OldSurvival and NewSurvival are means over the requests that both policies answered with a summary, from
	// 0 to 1. MaxLoss is how far the second may be below the first.
	OldSurvival float64 `json:"old_survival"`
	NewSurvival float64 `json:"new_survival"`
	MaxLoss     float64 `json:"max_loss"`
	// ModelTokens and ModelMicros are what questions of the module to a model came to meanwhile, in tokens and in
	// millionths of the unit of money, those of live requests included.
	ModelTokens int64 `json:"model_tokens,omitempty"`
	ModelMicros int64 `json:"model_micros,omitempty"`
}

// Compared is a request with the answers of both policies.
type Compared struct {
	ThreadID string `json:"thread_id"`
	// Messages and SourceTokens are the range of a summary.
	Messages     int     `json:"messages,omitempty"`
	SourceTokens int64   `json:"source_tokens,omitempty"`
	Old          Outcome `json:"old"`
	New          Outcome `json:"new"`
}

// Outcome is what a policy made of a request.
type Outcome struct {
	// SummaryTokens is the size of a summary, Survival what it keeps, as compaction.Quality.Overall.
	SummaryTokens int64   `json:"summary_tokens,omitempty"`
	Survival      float64 `json:"survival,omitempty"`
	// Decision is the reason of an admission policy, "allowed" included.
	Decision string `json:"decision,omitempty"`
	Error    string `json:"error,omitempty"`
	// Recorded means that the answer is the one to the live request, which was not repeated.
	Recorded bool          `json:"recorded,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

// Refusal is why a policy must not replace the one in use.
//
//nolint:errname // it is a result, too
type Refusal struct {
	Report *Report
	// Reason names the request.
	Reason string
	Err    error
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Err == nil {
		return "trial: " + r.Reason
	}
	return fmt.Sprintf("trial: %s: %v", r.Reason, r.Err)
}

// Unwrap returns Err.
func (r *Refusal) Unwrap() error { return r.Err }
