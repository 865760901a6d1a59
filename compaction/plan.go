package compaction

import (
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// Range is a part of the log that a summary would stand for.
type Range struct {
	// FromID and ToID are the first and last message, From and To their indices
	// in the log that was planned on, both included.
	FromID, ToID string
	From, To     int
	// Tokens of the range, without the previous summary.
	Tokens int64
	// PreviousSummary stands for what came before the range.
	PreviousSummary *string
	// ReadFiles and ModifiedFiles were touched by tool calls up to the end of the
	// range, sorted.
	ReadFiles, ModifiedFiles []string
}

// Plan says what to summarize next, given the newest marker, nil for none. It
// reports false when there is too little. The range starts behind what the
// marker covers and ends where no call waits for its result, before the newest
// messages that the policy keeps. The latest user message stays too, unless the
// turn that it began is by itself larger than what is kept: then the range may
// end inside the turn, and the message stays in the view as if pinned.
func Plan(log []abi.Message, prev *Marker, p Policy) (*Range, bool) {
	start := 0
	for start < len(log) && log[start].Role == abi.RoleSystem {
		start++
	}
	if prev != nil {
		if i := indexOf(log, prev.ToID); i >= 0 {
			start = i + 1
		}
	}
	limit := keepFrom(log, start, p)
	end := boundary(log, start, limit)
	if end < start {
		return nil, false
	}
	r := &Range{FromID: log[start].ID, ToID: log[end].ID, From: start, To: end}
	r.Tokens = Estimate(log[start : end+1])
	if r.Tokens < p.MinRangeTokens || r.FromID == "" || r.ToID == "" {
		return nil, false
	}
	read, modified := make(fileSet), make(fileSet)
	if prev != nil {
		r.PreviousSummary = &prev.Summary
		read.add(prev.ReadFiles...)
		modified.add(prev.ModifiedFiles...)
	}
	fileOperations(log[start:end+1], read, modified)
	r.ModifiedFiles = modified.sorted()
	for _, f := range r.ModifiedFiles {
		delete(read, f)
	}
	r.ReadFiles = read.sorted()
	return r, true
}

// keepFrom is the index of the first message that stays as it is.
func keepFrom(log []abi.Message, start int, p Policy) int {
	from, tokens := len(log), int64(0)
	for from > start && (tokens < p.KeepRecentTokens || len(log)-from < p.KeepRecentMessages) {
		from--
		tokens += EstimateMessage(&log[from])
	}
	user := latestUser(log)
	if user < start || user >= from {
		return from
	}
	// The turn under way is larger than what is kept. If what came before it is
	// worth a summary, the turn stays whole; else it is split.
	if Estimate(log[start:user]) >= p.MinRangeTokens {
		return user
	}
	return from
}

// latestUser is the index of the newest message that a user wrote, or -1.
func latestUser(log []abi.Message) int {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Role == abi.RoleUser && log[i].Visibility != abi.VisibilityInternal {
			return i
		}
	}
	return -1
}

// boundary is the last index in [start, limit) after which no call waits for a
// result and no result follows, or -1. A call that is never answered in the log
// counts as answered: it was interrupted.
func boundary(log []abi.Message, start, limit int) int {
	answered := make(map[string]bool)
	for i := start; i < len(log); i++ {
		if log[i].Role == abi.RoleTool {
			answered[log[i].ToolCallID] = true
		}
	}
	open := make(map[string]bool)
	best := -1
	for i := start; i < limit; i++ {
		for _, c := range log[i].ToolCalls {
			if answered[c.ID] {
				open[c.ID] = true
			}
		}
		if log[i].Role == abi.RoleTool {
			delete(open, log[i].ToolCallID)
		}
		if len(open) == 0 && (i+1 == len(log) || log[i+1].Role != abi.RoleTool) {
			best = i
		}
	}
	return best
}

func indexOf(log []abi.Message, id string) int {
	if id == "" {
		return -1
	}
	return slices.IndexFunc(log, func(m abi.Message) bool { return m.ID == id })
}
