package compaction

import "github.com/mortise-dev/mortise/abi"

// Range is a part of the log that a summary would replace.
type Range struct {
	// FromID and ToID are the first and last message, From and To their indices
	// in the log that was planned on, both included.
	FromID string `json:"from_id"`
	ToID   string `json:"to_id"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	// Tokens of the range, without the previous summary.
	Tokens int64 `json:"tokens"`
	// PreviousSummary covers what came before the range. It is that of the
	// newest marker, and is not written twice.
	PreviousSummary *string `json:"-"`
	// ReadFiles and ModifiedFiles were touched by tool calls up to the end of the
	// range, sorted.
	ReadFiles     []string `json:"read_files,omitempty"`
	ModifiedFiles []string `json:"modified_files,omitempty"`
}

// Plan returns what to summarize next, given the newest marker, nil for none. It
// reports false when there is too little. The range starts behind what the
// marker covers and ends where no call waits for its result, before the newest
// messages that the policy keeps. The latest user message stays too, unless the
// turn that it began is by itself larger than what is kept: then the range may
// end inside the turn, and the message stays in the view as if pinned. The policy
// is taken as it is, without defaults.
func Plan(log []abi.Message, prev *Marker, p Policy) (*Range, bool) {
	from := 0
	if prev != nil {
		if c, ok := unweighed(log).covered(prev); ok {
			from = c.to + 1
		}
	}
	return once(log, from).plan(log, prev, p, func(tokens int64) int64 { return tokens })
}

// plan is Plan on an index; scale calibrates an estimate.
func (x *index) plan(log []abi.Message, prev *Marker, p Policy, scale func(int64) int64) (*Range, bool) {
	start := 0
	c, covered := x.covered(prev)
	if covered {
		start = c.to + 1
	}
	for start < len(log) && !covered && log[start].Role == abi.RoleSystem {
		start++
	}
	limit := x.keepFrom(start, p, scale)
	end := x.boundary(start, limit)
	if end < start {
		return nil, false
	}
	r := &Range{FromID: log[start].ID, ToID: log[end].ID, From: start, To: end}
	r.Tokens = scale(x.tokens(start, end+1))
	if r.Tokens < p.MinRangeTokens || x.at(r.FromID) != start || x.at(r.ToID) != end {
		return nil, false
	}
	read, modified := make(fileSet), make(fileSet)
	fileOperations(log[start:end+1], read, modified)
	if covered {
		r.PreviousSummary = &prev.Summary
		read.add(prev.ReadFiles...)
		modified.add(prev.ModifiedFiles...)
	}
	r.ModifiedFiles = modified.sorted()
	for _, f := range r.ModifiedFiles {
		delete(read, f)
	}
	r.ReadFiles = read.sorted()
	return r, true
}

// keepFrom is the index of the first message that stays as it is.
func (x *index) keepFrom(start int, p Policy, scale func(int64) int64) int {
	n := len(x.entries)
	from := n
	keep := p.KeepRecentTokens
	if p.Mode == SafeFrontier {
		keep = 0
	}
	for from > start && (scale(x.tokens(from, n)) < keep || n-from < p.KeepRecentMessages) {
		from--
	}
	if x.user < start || x.user >= from {
		return from
	}
	// The turn under way is larger than what is kept. If what came before it is
	// worth a summary, the turn stays whole; else it is split.
	if x.user > start && scale(x.tokens(start, x.user)) >= p.MinRangeTokens {
		return x.user
	}
	return from
}
