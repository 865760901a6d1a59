package ledger

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// What counts in a statement, besides its words.
const (
	kindBonus = 1.3
	agentPart = 0.8 // what the agent said counts less than what people said
	briefPart = 0.7 // of a tiny page: the rest has names
	idPart    = 2   // of an id, such as HAT170
	lineCost  = 14  // bytes that a statement takes besides its text, about
)

// A meeting is a conversation of some people. There, a name counts with each word that stands next to it, and names
// that come up often count more: what a meeting is about comes back. What one person tells an agent comes up once.
const (
	meetingPeople = 3
	meetingPart   = 0.7 // of the room: the rest lists what was spoken of
)

func isPerson(by string) bool { return by != string(abi.RoleUser) && by != string(abi.RoleAssistant) }

// voices are the people who spoke in more than one message. A name in front of one message alone is rather the subject
// of a note.
func voices(list []abi.LedgerText) map[string]bool {
	first, out := map[string]int{}, map[string]bool{}
	for i := range list {
		t := &list[i]
		if !isPerson(t.By) || i > 0 && t.Message == list[i-1].Message && t.By == list[i-1].By {
			continue
		}
		if m, ok := first[t.By]; !ok {
			first[t.By] = t.Message
		} else if m != t.Message {
			out[t.By] = true
		}
	}
	return out
}

// meeting reports a record of what some people said to each other.
func (p *page) meeting() bool {
	return p.share.talk && len(p.s.Work.Values) == 0 && len(p.voices) >= meetingPeople
}

// unasked reports a meeting in which no agent said or did anything, also where the state was read back from a summary: it has no
// request.
func (p *page) unasked() bool {
	t := &p.s.Talk
	return p.meeting() && t.Last == nil && t.Question == nil &&
		!slices.ContainsFunc(p.s.Steps, func(s abi.LedgerStep) bool { return s.By != abi.RoleUser }) &&
		!slices.ContainsFunc(t.Statements, func(t abi.LedgerText) bool { return t.By == string(abi.RoleAssistant) }) &&
		!slices.ContainsFunc(t.Requests, func(r abi.LedgerRequest) bool { return r.Outcome != nil || r.Question != nil })
}

// dialogue is what is shown of a conversation without tools: what was said, and of a meeting the names that come up
// most and its course.
func (p *page) dialogue() {
	p.section(secSteps, p.share.steps, p.steps())
	list := p.s.Talk.Statements
	x, words, ok := readWords(p.s.Talk.Words, len(list))
	if !ok {
		x, words = talkLexicon(list)
	}
	all := make([]candidate, len(list))
	meeting, around := p.meeting(), len("- : \n")
	if meeting {
		around = len(below + " : ")
	}
	for i := range list {
		t := &list[i]
		c := &all[i]
		if i == 0 || t.Message != list[i-1].Message || t.By != list[i-1].By {
			x.heads = append(x.heads, around+len(at(t.Message))+len(t.By)-len(betweenSaid))
		}
		c.group = len(x.heads)
		c.words, c.size, c.factor = words[i], len(t.Text)+len(betweenSaid), .9+float64(.2*p.recency(t.Message))
		if t.Kind != "" {
			c.factor *= kindBonus
		}
		if t.By == string(abi.RoleAssistant) {
			c.factor *= agentPart
		}
	}
	x.weigh(all)
	room := min(int(p.share.statements*float64(p.limit)), p.limit-len(p.b)) - len(secStatement) - 8
	if meeting {
		x.paired = true
		room = int(float64(room) * meetingPart)
	}
	x.favour(meeting)
	if p.brief() && !meeting {
		room = int(float64(room) * briefPart)
	}
	p.lex = x
	if !meeting {
		x.choose(all, room)
		p.said(all)
		return
	}
	parts := stretches(list, max(1, min(int(float64(room)*coursePart)/stretchRoom, maxStretches)))
	x.choose(all, room-x.represent(all, parts, room))
	p.section(secSubjects, 1, x.subjects())
	p.section(secCourse, 1, p.course(x, all, parts))
}

// favour raises what counts more: in a meeting names that come up often, else ids.
func (x *lexicon) favour(meeting bool) {
	for i := range x.value {
		switch {
		case meeting && x.weight[i] > plainWeight:
			x.value[i] *= float64(1 + bits.Len(uint(x.count[i])))
		case !meeting && x.kinds[i] == abi.WordID:
			x.value[i] *= idPart
		}
	}
}

// betweenSaid separates the statements of one message.
const betweenSaid = " · "

// said shows the chosen statements, word for word. Where only the user speaks, lines do not name the speaker.
func (p *page) said(all []candidate) {
	alone := true
	for i := range all {
		by := p.s.Talk.Statements[i].By
		alone = alone && (!all[i].taken || by != string(abi.RoleAssistant) && !p.voices[by])
	}
	if alone {
		p.section(secUser, 1, items(p.saidItems(all, 0, alone)))
		return
	}
	p.section(secStatement, 1, items(p.saidItems(all, 0, alone)))
}

// items makes items of texts.
func items(list []string) []string {
	for i := range list {
		list[i] = "- " + list[i]
	}
	return list
}

// saidItems puts the statements of one message and speaker on a line, from one place on.
func (p *page) saidItems(all []candidate, from int, alone bool) []string {
	var out []string
	m, by := -1, ""
	for i := range all {
		t := &p.s.Talk.Statements[from+i]
		if !all[i].taken {
			continue
		}
		text := clean(t.Text)
		if t.Replaces != 0 {
			text += " (earlier: " + at(t.Replaces) + ")"
		}
		if t.Message == m && t.By == by {
			out[len(out)-1] += betweenSaid + text
			continue
		}
		m, by = t.Message, t.By
		if !alone || by != string(abi.RoleUser) {
			text = clean(by) + ": " + text
		}
		out = append(out, at(m)+" "+text)
	}
	return out
}

// maxSubjects bounds the line of what comes up most, in bytes.
const maxSubjects = 300

// subjects is a line of the names that come up most.
func (x *lexicon) subjects() []string {
	line := "-"
	for _, w := range x.byCount() {
		if len(line)+len(x.label[w]) > maxSubjects {
			break
		}
		line += " " + x.label[w]
		x.seen[w] = true
	}
	return []string{line}
}

// byCount are the names, those that come up most first.
func (x *lexicon) byCount() []int {
	if x.names != nil {
		return x.names
	}
	x.names = make([]int, 0, len(x.kinds))
	for w := range x.kinds {
		if x.listed(w) {
			x.names = append(x.names, w)
		}
	}
	slices.SortFunc(x.names, func(a, b int) int { return cmp.Or(x.count[b]-x.count[a], a-b) })
	return x.names
}
