package compaction

import (
	"cmp"
	"fmt"
)

// Policy says when to compact and what to keep. Zero fields take defaults.
// Tokens are estimates, calibrated by bills where there are any.
type Policy struct {
	// WindowTokens is what the model takes, ReserveTokens what is left free in it
	// for the answer, tools and system prompt. Defaults 200,000 and 16,384 (but at
	// most a quarter of the window).
	WindowTokens  int64
	ReserveTokens int64
	// ThresholdTokens is the size of the view at which a compaction is considered.
	// Default 60 % of the window.
	ThresholdTokens int64
	// KeepRecentTokens and KeepRecentMessages are the newest part that stays as it
	// is, whichever is more. Defaults 20,000 (but at most a third of the
	// threshold) and 2.
	KeepRecentTokens   int64
	KeepRecentMessages int
	// MinRangeTokens is the least that is worth a summary. Default 1,024.
	MinRangeTokens int64
	// SummaryTokens is how long a summary may be. Default 4,000 (but at most a
	// quarter of the threshold).
	SummaryTokens int64
	// MinSavingsRatio is the least share of the range that a summary must save.
	// Default 0.3.
	MinSavingsRatio float64
	// MinSurvival is the least overall score of a summary, 0 to 1. Default 0: the
	// score is told, and refuses nothing.
	MinSurvival float64
}

func (p Policy) withDefaults() (Policy, error) {
	for name, v := range map[string]int64{
		"WindowTokens": p.WindowTokens, "ReserveTokens": p.ReserveTokens, "ThresholdTokens": p.ThresholdTokens,
		"KeepRecentTokens": p.KeepRecentTokens, "KeepRecentMessages": int64(p.KeepRecentMessages),
		"MinRangeTokens": p.MinRangeTokens, "SummaryTokens": p.SummaryTokens,
	} {
		if v < 0 {
			return p, fmt.Errorf("compaction: Policy.%s is %d, must not be negative", name, v)
		}
	}
	if p.MinSavingsRatio < 0 || p.MinSavingsRatio >= 1 {
		return p, fmt.Errorf("compaction: Policy.MinSavingsRatio is %v, must be at least 0 and below 1", p.MinSavingsRatio)
	}
	if p.MinSurvival < 0 || p.MinSurvival > 1 {
		return p, fmt.Errorf("compaction: Policy.MinSurvival is %v, must be from 0 to 1", p.MinSurvival)
	}
	p.WindowTokens = cmp.Or(p.WindowTokens, 200_000)
	p.ReserveTokens = cmp.Or(p.ReserveTokens, min(16_384, p.WindowTokens/4))
	p.ThresholdTokens = cmp.Or(p.ThresholdTokens, p.WindowTokens*6/10)
	p.KeepRecentTokens = cmp.Or(p.KeepRecentTokens, min(20_000, p.ThresholdTokens/3))
	p.KeepRecentMessages = cmp.Or(p.KeepRecentMessages, 2)
	p.MinRangeTokens = cmp.Or(p.MinRangeTokens, 1024)
	p.SummaryTokens = cmp.Or(p.SummaryTokens, min(4000, p.ThresholdTokens/4))
	p.MinSavingsRatio = cmp.Or(p.MinSavingsRatio, 0.3)
	if p.ReserveTokens >= p.WindowTokens {
		return p, fmt.Errorf("compaction: Policy.ReserveTokens is %d, must be below WindowTokens (%d)", p.ReserveTokens, p.WindowTokens)
	}
	if p.KeepRecentTokens+p.SummaryTokens >= p.ThresholdTokens {
		return p, fmt.Errorf("compaction: Policy.KeepRecentTokens and SummaryTokens are %d together, must be below ThresholdTokens (%d), or each compaction leads to the next",
			p.KeepRecentTokens+p.SummaryTokens, p.ThresholdTokens)
	}
	return p, nil
}
