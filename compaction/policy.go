package compaction

import (
	"cmp"
	"fmt"
)

// Policy configures when to compact and what to keep. Zero fields take defaults.
// Tokens are estimates, calibrated by bills where there are any.
type Policy struct {
	// Mode is [KeepRecent] when empty.
	Mode Mode
	// WindowTokens is what the model takes, ReserveTokens what is left free in it
	// for the answer, tools and system prompt. Defaults 200,000 and 16,384 (but at
	// most a quarter of the window).
	WindowTokens  int64
	ReserveTokens int64
	// ThresholdTokens is the size of the view at which a compaction is considered. It is
	// below WindowTokens less ReserveTokens. Default 60 % of the window, or 90 % of what
	// the reserve leaves of it when that is less.
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
	// SummarizerTokens is how much the summarizer takes at a time, the previous
	// summary included. A longer range is given to it in parts, each with the summary
	// of the parts before. Default WindowTokens.
	SummarizerTokens int64
	// MaskTokens is the size from which a tool output that the model has read is
	// shown by its beginning and a handle, if Config.Keep is set. Default 2,048.
	// Outputs of the tools in NeverMask, and pinned ones, stay as they are.
	MaskTokens int64
	NeverMask  []string
	// BreakerFailures is how many failures in a row of the summarizer open the
	// breaker: then Config.Fallback writes for a minute, twice as long after each
	// further failure, up to an hour. A failure that is permanent, see
	// [Summarizer], opens it at once. Default 3; negative for never.
	BreakerFailures int
	// MinSavingsRatio is the least share of the view that a compaction must save, as each one makes the
	// provider read anew what follows the summary. A tenth of it suffices where the window is exceeded.
	// Default 0.1.
	MinSavingsRatio float64
	// MinSurvival is the least overall score of a summary, 0 to 1. Default 0: the
	// score is reported, and refuses nothing.
	MinSurvival float64
	// Bars are the least scores of single kinds.
	Bars Bars
}

// leastSaved is how many tokens of a view a compaction must save.
func (p *Policy) leastSaved(view int64) float64 {
	least := p.MinSavingsRatio * float64(view)
	if view > p.WindowTokens-p.ReserveTokens {
		least /= 10
	}
	return least
}

// Mode is how much of the newest part a compaction leaves.
type Mode string

// Modes.
const (
	// KeepRecent leaves KeepRecentTokens and KeepRecentMessages as they are.
	KeepRecent Mode = "keep_recent_raw_suffix"
	// SafeFrontier summarizes up to the last place where no call waits for its
	// result, and leaves KeepRecentMessages.
	SafeFrontier Mode = "compact_to_safe_frontier"
)

// Bars are least shares, from 0 to 1, of what must survive in a summary, by kind.
// A kind that the source does not have passes.
type Bars struct {
	Paths       float64
	URLs        float64
	Identifiers float64
	Numbers     float64
	Errors      float64
	Files       float64
	Pins        float64
	Structure   float64
}

// Validate reports what is wrong with a policy, as [New] does, by the name of the field.
func (p Policy) Validate() error {
	_, err := p.withDefaults()
	return err
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
	if p.Mode != "" && p.Mode != KeepRecent && p.Mode != SafeFrontier {
		return p, fmt.Errorf("compaction: Policy.Mode %.40q: must be %s or %s", p.Mode, KeepRecent, SafeFrontier)
	}
	for _, b := range p.Bars.list(&Quality{}) {
		if b.least < 0 || b.least > 1 {
			return p, fmt.Errorf("compaction: Policy.Bars: %s is %v, must be from 0 to 1", b.name, b.least)
		}
	}
	p.Mode = cmp.Or(p.Mode, KeepRecent)
	p.WindowTokens = cmp.Or(p.WindowTokens, 200_000)
	p.SummarizerTokens = cmp.Or(p.SummarizerTokens, p.WindowTokens)
	p.MaskTokens = cmp.Or(p.MaskTokens, 2048)
	p.BreakerFailures = cmp.Or(p.BreakerFailures, 3)
	p.ReserveTokens = cmp.Or(p.ReserveTokens, min(16_384, p.WindowTokens/4))
	p.ThresholdTokens = cmp.Or(p.ThresholdTokens, min(p.WindowTokens*6/10, (p.WindowTokens-p.ReserveTokens)*9/10))
	p.KeepRecentTokens = cmp.Or(p.KeepRecentTokens, min(20_000, p.ThresholdTokens/3))
	p.KeepRecentMessages = cmp.Or(p.KeepRecentMessages, 2)
	p.MinRangeTokens = cmp.Or(p.MinRangeTokens, 1024)
	p.SummaryTokens = cmp.Or(p.SummaryTokens, min(4000, p.ThresholdTokens/4))
	p.MinSavingsRatio = cmp.Or(p.MinSavingsRatio, 0.1)
	if p.ReserveTokens >= p.WindowTokens {
		return p, fmt.Errorf("compaction: Policy.ReserveTokens is %d, must be below WindowTokens (%d)", p.ReserveTokens, p.WindowTokens)
	}
	if p.ThresholdTokens >= p.WindowTokens-p.ReserveTokens {
		return p, fmt.Errorf("compaction: Policy.ThresholdTokens is %d, must be below WindowTokens less ReserveTokens (%d - %d = %d), or the window is full before a compaction starts",
			p.ThresholdTokens, p.WindowTokens, p.ReserveTokens, p.WindowTokens-p.ReserveTokens)
	}
	if p.KeepRecentTokens+p.SummaryTokens >= p.ThresholdTokens {
		return p, fmt.Errorf("compaction: Policy.KeepRecentTokens and SummaryTokens are %d together, must be below ThresholdTokens (%d), or each compaction leads to the next",
			p.KeepRecentTokens+p.SummaryTokens, p.ThresholdTokens)
	}
	return p, nil
}
