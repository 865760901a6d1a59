package hook

import "strings"

// RepairUse counts names of before a compaction that the agent wrote into a call after it, before anything showed them
// again: those that the summary held, those that a note had given back, and those that were in neither.
type RepairUse struct {
	InSummary int `json:"in_summary"`
	GivenBack int `json:"given_back"`
	Lost      int `json:"lost"`
}

// Add adds other counts.
func (u *RepairUse) Add(o RepairUse) {
	u.InSummary += o.InSummary
	u.GivenBack += o.GivenBack
	u.Lost += o.Lost
}

// source is where the agent could have a name from.
type source int

const (
	fromNowhere source = iota
	fromSummary
	fromNote
)

// watch begins to count uses of names, after a compaction. It is kept in memory alone: a daemon that restarts counts less.
func (l *lane) watch(names []string) {
	l.watched = make(map[string]source, len(names))
	for _, n := range names {
		l.watched[n] = fromNowhere
	}
}

// summarized notes what a summary holds.
func (l *lane) summarized(summary string) {
	for n := range l.watched {
		if holds(summary, n) {
			l.watched[n] = fromSummary
		}
	}
}

// noted notes what a note gives back.
func (l *lane) noted(names []string) {
	for _, n := range names {
		if at, ok := l.watched[n]; ok && at == fromNowhere {
			l.watched[n] = fromNote
		}
	}
}

// shown stops to count what a text shows to the agent.
func (h *handling) shown(text string) {
	if len(h.lane.watched) == 0 {
		return
	}
	for _, n := range namesIn(text) {
		delete(h.lane.watched, n)
	}
}

// used counts what a call uses, each name once.
func (h *handling) used(args any) {
	if len(h.lane.watched) == 0 {
		return
	}
	var u RepairUse
	for _, n := range namesIn(argumentText(args)) {
		at, ok := h.lane.watched[n]
		if !ok {
			continue
		}
		delete(h.lane.watched, n)
		switch at {
		case fromSummary:
			u.InSummary++
		case fromNote:
			u.GivenBack++
		case fromNowhere:
			u.Lost++
		}
	}
	if u != (RepairUse{}) {
		h.record.Repair = &u
	}
}

// argumentText is the strings of a call's arguments.
func argumentText(args any) string {
	r, err := readResult(args, nil)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, t := range r.texts {
		b.WriteString(t.was + "\n")
	}
	return b.String()
}
