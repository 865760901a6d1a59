package eval

import "time"

// Schema names the format of a report.
const Schema = "mortise.compact_eval.v1"

// Report is what a run measured.
type Report struct {
	Schema string `json:"schema"`
	// Cells are in the order of sets, contenders, budgets, chains and growths.
	Cells []Cell `json:"cells"`
}

// Cell is one contender on one set, at one budget and chain. Shares are from 0
// to 1.
type Cell struct {
	Set       string `json:"set"`
	Contender string `json:"contender"`
	Kind      Kind   `json:"kind"`
	Budget    Budget `json:"budget"`
	Chain     int    `json:"chain"`
	// Growth is empty for a single compaction.
	Growth Growth `json:"growth,omitempty"`

	Conversations int `json:"conversations"`
	Probes        int `json:"probes"`
	// Groundable probes have something that could ground them. The others do not
	// count for the grounded score.
	Groundable int `json:"groundable"`
	// Unstated probes were left out: the conversation does not hold any of their
	// strings, so nothing could keep them.
	Unstated int `json:"unstated,omitempty"`
	// Score is the mean of the probes in the last text.
	Score
	// Known is about the facts that the first part of a chain states; nil for a
	// single compaction, and when it states none.
	Known *Known `json:"known,omitempty"`

	// TokensBefore and TokensAfter are estimates, summed over the conversations;
	// Savings is the share that goes.
	TokensBefore int64   `json:"tokens_before"`
	TokensAfter  int64   `json:"tokens_after"`
	Savings      float64 `json:"savings"`

	Structure Structure `json:"structure"`
	// Compactions that were asked for, and how many of them failed or came back
	// longer than the budget.
	Compactions int    `json:"compactions"`
	Failures    int    `json:"failures,omitempty"`
	Overruns    int    `json:"overruns,omitempty"`
	Error       string `json:"error,omitempty"` // the first failure's
	// Latency of a compaction.
	Mean Millis `json:"mean_ms"`
	Max  Millis `json:"max_ms"`
}

// Known compares what a chain holds of the same facts at its first and at its
// last compaction.
type Known struct {
	Probes int   `json:"probes"`
	First  Score `json:"first"`
	Last   Score `json:"last"`
	// Kept is the share of what the first compaction kept that the last one has
	// still; 1 when the first one kept nothing.
	Kept Score `json:"kept"`
}

// Millis is a duration that is written in milliseconds.
type Millis float64

func millis(d time.Duration) Millis { return Millis(float64(d) / float64(time.Millisecond)) }

// Find returns the cell of a contender on a set. A chain of 1 has no growth.
func (r *Report) Find(set, contender string, budget Budget, chain int, growth Growth) (*Cell, bool) {
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Set == set && c.Contender == contender && c.Budget == budget && c.Chain == chain && c.Growth == growth {
			return c, true
		}
	}
	return nil, false
}

// Below returns the cells of policies that keep less than least of either score
// that it names; a least of 0 asks for nothing.
func (r *Report) Below(least Score) []Cell {
	var out []Cell
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Kind == KindPolicy && (c.Literal < least.Literal || c.Grounded < least.Grounded) {
			out = append(out, *c)
		}
	}
	return out
}
