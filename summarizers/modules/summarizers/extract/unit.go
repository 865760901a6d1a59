package extract

import "strings"

// section is a heading of the summary.
type section uint8

// Sections in the order in which they are written.
const (
	secGoal section = iota
	secConstraints
	secDone
	secInProgress
	secBlocked
	secDecisions
	secErrors
	secRead
	secModified
	secCommands
	secIdents
	secOpen
	secPassages
	secNotes
	sectionCount
)

// heading is the line that opens a section.
func (s section) heading() string {
	switch s {
	case secGoal:
		return "## Goal"
	case secConstraints:
		return "## Constraints and instructions"
	case secDone:
		return "## Progress: done"
	case secInProgress:
		return "## Progress: in progress"
	case secBlocked:
		return "## Progress: blocked"
	case secDecisions:
		return "## Decisions"
	case secErrors:
		return "## Errors and fixes"
	case secRead:
		return "## Files read"
	case secModified:
		return "## Files modified"
	case secCommands:
		return "## Commands"
	case secIdents:
		return "## Identifiers and values"
	case secOpen:
		return "## Open items"
	case secNotes:
		return "## Notes"
	case secPassages, sectionCount:
	}
	return "## Key passages"
}

// share is the greatest part of the budget that a section takes before the key
// passages are chosen, in percent.
func (s section) share() int {
	switch s {
	case secGoal:
		return 7
	case secConstraints:
		return 9
	case secDone:
		return 6
	case secInProgress, secBlocked:
		return 3
	case secDecisions:
		return 5
	case secErrors:
		return 7
	case secRead:
		return 5
	case secModified:
		return 10
	case secCommands:
		return 5
	case secIdents:
		return 30
	case secOpen:
		return 5
	case secPassages, secNotes, sectionCount:
	}
	return 0
}

// kind groups the sections in which a text stands only once. A file can have
// been read and modified.
func (s section) kind() section {
	switch {
	case s == secRead, s == secModified:
		return s
	case s < secIdents:
		return secGoal
	}
	return secIdents
}

// inline reports sections whose items share a line.
func (s section) inline() bool { return s == secRead || s == secModified || s == secIdents }

// Speakers of a unit.
const (
	byUser      = "user"
	byAssistant = "assistant"
	byTool      = "tool"
	byEarlier   = "earlier"
)

// unit is a piece of text that the summary takes whole or leaves.
type unit struct {
	text     string
	by       string
	sec      section
	msg      int32 // index of its message; negative for the previous summary
	ord      int32 // its place among all units
	concepts []int32
	factor   float32 // speaker, cues, age
	taken    bool
	old      bool // from the previous summary
	derived  bool // a note on a sentence that is a unit as well
}

// value is what the unit would add to the summary.
func (u *unit) value(l *lexicon) float32 {
	v := float32(0)
	for _, id := range u.concepts {
		c := &l.list[id]
		v += c.weight * left(c.covered)
	}
	return v * u.factor
}

// cost is how many bytes it takes, about: values share the line of their key.
func (u *unit) cost() int {
	if u.sec == secIdents {
		if i := strings.Index(u.text, ": "); i >= 0 {
			return len(u.text) - i
		}
	}
	return len(u.text) + len(separator)
}

// density is value per byte; short units pay for the context that they lack.
func (u *unit) density(l *lexicon) float32 {
	if u.sec == secIdents {
		return u.value(l) / float32(u.cost()+6)
	}
	return u.value(l) / float32(len(u.text)+12)
}

// ends reports text that ends as a sentence does.
func (u *unit) ends() bool {
	switch u.text[len(u.text)-1] {
	case '.', '!', '?':
		return true
	}
	return false
}
