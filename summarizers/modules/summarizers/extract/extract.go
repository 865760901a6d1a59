package extract

import (
	"errors"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// Policy is the name under which a module offers this package.
const Policy = "extract"

// Errors of [Summarize].
var (
	ErrNoBudget  = errors.New("extract: budget_tokens: too small for a summary")
	ErrNoContent = errors.New("extract: messages: nothing to summarize")
)

// Summarize writes the summary. It is never longer than the budget.
func Summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	cfg := ParseConfig(req.Config)
	limit := int(min(float64(req.BudgetTokens)*cfg.BytesPerToken, 8<<20))
	if limit < minBudgetBytes {
		return nil, ErrNoBudget
	}
	c := newCollector(cfg)
	leftOut := 0
	if req.PreviousSummary != nil {
		c.goal = true
		leftOut = c.previous(*req.PreviousSummary)
	}
	c.messages(req.Messages)
	c.lists(req)
	c.focus(req.Focus)
	if len(c.units) == 0 {
		return nil, ErrNoContent
	}
	c.settle()
	c.lex.weigh()
	p := &picker{lex: c.lex, units: c.units}
	p.fill(limit)
	for i := range p.units {
		if u := &p.units[i]; u.old && !u.taken && !u.derived {
			leftOut++
		}
	}
	s := &mortise.Summary{Text: render(p.units, leftOut, limit), Policy: Policy}
	if n := len(req.Messages); n > 0 {
		s.FromID, s.ToID = req.Messages[0].ID, req.Messages[n-1].ID
	}
	return s, nil
}

// lists adds what the host knows: files and live tasks.
func (c *collector) lists(req *mortise.SummarizeRequest) {
	c.msg = int32(len(req.Messages))
	for _, f := range req.ReadFiles {
		c.file(f, fileRead)
	}
	for _, f := range req.ModifiedFiles {
		c.file(f, fileModified)
	}
	for _, t := range req.LiveTasks {
		c.unit(byAssistant, secOpen, "task "+tidy(t[:runeCut(t, 200)], false)+" is still running", 4, weightUser)
	}
}

// focus marks the concepts that someone asked to keep in view.
func (c *collector) focus(text string) {
	for _, id := range c.lex.concepts(nil, text[:runeCut(text, 2000)]) {
		c.lex.list[id].focus = true
	}
}

// settle lists each file once, and drops all but the last few units of what is in
// progress: the older ones are history.
func (c *collector) settle() {
	c.settleFiles()
	const openKept = 4
	seen := 0
	for i := len(c.units) - 1; i >= 0; i-- {
		u := &c.units[i]
		if u.sec == secInProgress {
			if seen++; seen > openKept {
				u.sec = secPassages
			}
		}
	}
}

// How a budget is spent, in percent of what the sections leave.
const (
	tinyBytes  = 600 // below this there are notes and values only, without headings
	proseShare = 66  // whole sentences; the rest goes to notes
	goalFloor  = 0.7 // a goal may be a little less telling than the rest
)

// fill chooses within limit bytes: first each section within its share, then key
// passages, notes and values with what is left, then anything that still fits.
func (p *picker) fill(limit int) {
	room := limit
	if limit >= tinyBytes {
		room -= p.headings(limit)
	}
	if p.total() <= room {
		for i := range p.units {
			p.units[i].taken = len(p.units[i].concepts) > 0 && !p.units[i].derived
		}
		return
	}
	if limit < tinyBytes {
		p.take(room, 0, func(u *unit) bool { return u.sec >= secIdents && len(u.text) <= noteMax })
		return
	}
	room = p.sections(limit, room)
	values := min(limit*valueShare(limit)/100, room, p.values())
	room -= p.take((room-values)*proseShare/100, 0, func(u *unit) bool { return movable(u) && u.sec == secPassages })
	room -= p.take(room-values, 0, func(u *unit) bool { return u.sec == secNotes })
	room -= p.take(min(values, room), 0, func(u *unit) bool { return u.sec == secIdents })
	p.take(room, 0, func(*unit) bool { return true })
}

// valueShare is the part of a budget that values may take, in percent. The less
// there is to say, the more of it are values: a sentence takes the room of six.
func valueShare(limit int) int {
	return secIdents.share() + max(0, 4000-limit)*30/4000
}

// values is what all values would take.
func (p *picker) values() int {
	n := 0
	for i := range p.units {
		if p.units[i].sec == secIdents {
			n += p.units[i].cost()
		}
	}
	return n
}

// sections gives each section its share and returns the room that is left.
func (p *picker) sections(limit, room int) int {
	floor := p.floor(room)
	for s := secGoal; s < secPassages; s++ {
		if s == secIdents {
			continue
		}
		least := floor
		switch s {
		case secGoal:
			least *= goalFloor
		case secModified: // what was done is listed, even if it is listed nowhere else
			least = 0
		default:
		}
		room -= p.take(limit*s.share()/100, least, func(u *unit) bool { return u.sec == s })
	}
	return room
}

// total is what all units together would take, without notes on what is there
// in full.
func (p *picker) total() int {
	n := 0
	for i := range p.units {
		if u := &p.units[i]; !u.derived {
			n += u.cost() + len(separator) + len(u.by)
		}
	}
	return n
}

// movable reports units that may stand among the key passages; those of prose
// sections that did not fit their share move there.
func movable(u *unit) bool {
	switch u.sec {
	case secRead, secModified, secCommands, secIdents:
		return false
	case secGoal, secConstraints, secDone, secInProgress, secBlocked, secDecisions, secErrors, secOpen:
		u.sec = secPassages
	case secPassages, secNotes, sectionCount:
	}
	return true
}

// headings is about how many bytes headings and line starts take.
func (p *picker) headings(limit int) int {
	var has [sectionCount]bool
	n := 0
	for i := range p.units {
		if s := p.units[i].sec; !has[s] {
			has[s] = true
			n += len(s.heading()) + 2
		}
	}
	return min(n, limit/4)
}

// floor is the density below which a section leaves its share to the others: a
// part of the density at which the budget would be full without sections.
func (p *picker) floor(room int) float32 {
	if room <= 0 {
		return 0
	}
	probe := &picker{lex: p.lex, units: p.units}
	covered := make([]uint8, len(p.lex.list))
	for i := range p.lex.list {
		covered[i] = p.lex.list[i].covered
	}
	probe.take(room, 0, func(*unit) bool { return true })
	sum, n := float32(0), 0
	for i := range p.lex.list {
		p.lex.list[i].covered = covered[i]
	}
	for i := range p.units {
		if p.units[i].taken {
			p.units[i].taken = false
			sum += p.units[i].density(p.lex)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return 0.6 * sum / float32(n)
}
