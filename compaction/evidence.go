package compaction

// AdmissionEvidence sums decisions up for operators and tests. Its JSON is the
// schema of [AdmissionSchema].
type AdmissionEvidence struct {
	Schema        string `json:"schema"`
	DecisionCount int    `json:"decisionCount"`
	AdmittedCount int    `json:"admittedCount"`
	RejectedCount int    `json:"rejectedCount"`
	// RejectedByReason counts refusals only.
	RejectedByReason map[string]int      `json:"rejectedByReason"`
	ForegroundImpact ForegroundImpact    `json:"foregroundImpact"`
	Decisions        []AdmissionDecision `json:"decisions"`
}

// ForegroundImpact is how long steps took while compactions were decided on, in
// milliseconds.
type ForegroundImpact struct {
	Source string `json:"source"`
	P95MS  int64  `json:"p95Ms"`
	P99MS  int64  `json:"p99Ms"`
}

// evidenceSource marks latencies that come from the caller.
const evidenceSource = "deterministic_fixture"

// Evidence sums decisions up. The latencies are the caller's, in milliseconds;
// nothing is measured here. The decisions are copied, what they point to is not.
func Evidence(decisions []AdmissionDecision, p95, p99 int64) AdmissionEvidence {
	e := AdmissionEvidence{
		Schema: AdmissionSchema, DecisionCount: len(decisions), RejectedByReason: map[string]int{},
		ForegroundImpact: ForegroundImpact{Source: evidenceSource, P95MS: p95, P99MS: p99},
		Decisions:        append([]AdmissionDecision{}, decisions...),
	}
	for i := range decisions {
		if decisions[i].Allowed {
			e.AdmittedCount++
			continue
		}
		e.RejectedCount++
		e.RejectedByReason[decisions[i].Reason]++
	}
	return e
}
