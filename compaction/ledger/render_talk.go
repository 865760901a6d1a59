package ledger

import (
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
	meetingPart   = 0.7 // of the room: the rest lists who spoke of what
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
// most and who spoke of what.
func (p *page) dialogue() {
	p.section(secSteps, p.share.steps, p.steps())
	list := p.s.Talk.Statements
	x, words, ok := readWords(p.s.Talk.Words, len(list))
	if !ok {
		x, words = talkLexicon(list)
	}
	all := make([]candidate, len(list))
	for i := range list {
		t := &list[i]
		c := &all[i]
		if i == 0 || t.Message != list[i-1].Message || t.By != list[i-1].By {
			x.heads = append(x.heads, len("- : \n")+len(at(t.Message))+len(t.By)-len(betweenSaid))
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
	meeting := p.meeting()
	if meeting {
		x.paired = true
		room = int(float64(room) * meetingPart)
	}
	x.favour(meeting)
	if p.brief() && !meeting {
		room = int(float64(room) * briefPart)
	}
	x.choose(all, room)
	p.said(all)
	if meeting {
		p.section(secSubjects, 1, x.subjects())
		p.section(secSpeakers, 1, p.speakers(x, all))
	}
	p.lex = x
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
		p.section(secUser, 1, p.saidItems(all, alone))
		return
	}
	p.section(secStatement, 1, p.saidItems(all, alone))
}

// saidItems puts the statements of one message and speaker on a line.
func (p *page) saidItems(all []candidate, alone bool) []string {
	var out []string
	m, by := -1, ""
	for i := range all {
		t := &p.s.Talk.Statements[i]
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
		out = append(out, "- "+at(m)+" "+text)
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
	var order offers
	for w := range x.kinds {
		if x.listed(w) {
			order = append(order, offer{float64(x.count[w]), w})
		}
	}
	order.order()
	x.names = make([]int, 0, len(order))
	for len(order) > 0 {
		x.names = append(x.names, order.pop().at)
	}
	return x.names
}

// speaker is a participant of a meeting.
type speaker struct {
	by                 string
	first, last, bytes int
	said               []int // the places of the statements
}

// speakers lists who spoke of what: the words that a speaker used more than the others, and names that the page does
// not hold yet. Who spoke more has more room. All are the statements.
func (p *page) speakers(x *lexicon, all []candidate) []string {
	by, total := map[string]*speaker{}, 0
	var list []*speaker
	var q *speaker
	for i := range p.s.Talk.Statements {
		t := &p.s.Talk.Statements[i]
		if q == nil || q.by != t.By {
			q = by[t.By]
		}
		if q == nil {
			q = &speaker{by: t.By, first: t.Message}
			by[t.By], list = q, append(list, q)
		}
		q.last, q.bytes, total = t.Message, q.bytes+len(t.Text), total+len(t.Text)
		q.said = append(q.said, i)
	}
	slices.SortStableFunc(list, func(a, b *speaker) int { return b.bytes - a.bytes })
	room := p.limit - len(p.b) - len(secSpeakers) - 8
	z := scores{counts: make([]int, len(x.weight)), given: make([]bool, len(x.weight))}
	var out []string
	for _, q := range list {
		part := room * q.bytes / total
		line := []byte("- " + clean(q.by) + " (" + at(q.first) + " to " + at(q.last) + "):")
		n := len(line)
		if n >= part {
			continue
		}
		for words := z.words(x, all, q.said); len(words) > 0; {
			w := words.pop().at
			if len(line)+len(x.label[w])+2 > part {
				break
			}
			line = append(append(line, ' '), x.label[w]...)
			z.given[w], x.seen[w] = true, true
		}
		if len(line) > n {
			out = append(out, string(line))
		}
	}
	return out
}

// Weights of a speaker's words.
const (
	newName   = 10  // a name that the page does not hold
	givenPart = 0.3 // a word that another speaker has
)

// scores are those of the words of one speaker after the other.
type scores struct {
	counts []int // zero between two speakers
	given  []bool
	held   []int
	order  offers
}

// words are those of a speaker, given the statements, the ones that stand out first.
func (z *scores) words(x *lexicon, all []candidate, said []int) offers {
	z.held, z.order = z.held[:0], z.order[:0]
	for _, i := range said {
		for _, w := range all[i].words {
			if z.counts[w] == 0 {
				z.held = append(z.held, w)
			}
			z.counts[w]++
		}
	}
	for _, w := range z.held {
		n := z.counts[w]
		z.counts[w] = 0
		isNew := x.listed(w) && !x.seen[w]
		if n < 2 && !isNew || x.kinds[w] == abi.WordBareNumber {
			continue
		}
		score := float64(n) * (.5 + float64(n)/float64(x.count[w]))
		switch {
		case z.given[w]:
			score *= givenPart
		case isNew:
			score *= newName
		}
		z.order = append(z.order, offer{score, w})
	}
	z.order.order()
	return z.order
}
