package replaycmd

import (
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/cli/wording"
)

// maxSteps is how many steps are measured; further ones replace older ones.
const maxSteps = 10_000

// stepClock measures the steps of runs: what a user waits for. It is safe for
// concurrent use.
type stepClock struct {
	mu    sync.Mutex
	began map[string]time.Time // by run
	took  []time.Duration
	n     int
}

func (c *stepClock) event(e agent.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Type {
	case agent.EventStepStart:
		if c.began == nil {
			c.began = make(map[string]time.Time)
		}
		c.began[e.RunID] = e.At
	case agent.EventStepEnd:
		if began, ok := c.began[e.RunID]; ok {
			c.add(e.At.Sub(began))
		}
	case agent.EventRunFinish:
		delete(c.began, e.RunID)
	default: // says nothing of time
	}
}

func (c *stepClock) add(d time.Duration) {
	if len(c.took) < maxSteps {
		c.took = append(c.took, d)
		return
	}
	c.took[c.n%maxSteps] = d
	c.n++
}

// percentile is how long so many of a hundred steps took at most, in milliseconds.
func (c *stepClock) percentile(p int) int64 {
	c.mu.Lock()
	sorted := slices.Clone(c.took)
	c.mu.Unlock()
	if len(sorted) == 0 {
		return 0
	}
	slices.Sort(sorted)
	return sorted[(len(sorted)*p+99)/100-1].Milliseconds()
}

// evidence sums the decisions of a run up, with how long its steps took.
func evidence(admissions []AdmissionReport, c *stepClock) *compaction.AdmissionEvidence {
	var decisions []compaction.AdmissionDecision
	for _, a := range admissions {
		for range min(a.Count, wording.MaxDecisions) {
			decisions = append(decisions, *a.Decision)
		}
	}
	if len(decisions) == 0 {
		return nil
	}
	e := compaction.Evidence(decisions, c.percentile(95), c.percentile(99))
	e.ForegroundImpact.Source = wording.SourceSteps
	return &e
}
