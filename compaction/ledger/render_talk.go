package ledger

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

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

// A meeting is shown as stretches of about the same length, one behind the other.
const (
	stretchRoom   = 320 // bytes of a page for each
	maxStretches  = 24
	coursePart    = .43 // of the room for what was said: as much as there is for the rest
	topicRoom     = 80  // of these, for words that are the stretch's more than the meeting's
	stretchVoices = 3   // those that spoke most are named
)

// course lists what was spoken of, in order: for each part who spoke most, its topics, then names that the page does not
// hold yet and words that come up often, and below that what was said, word for word. All are the statements.
func (p *page) course(x *lexicon, all []candidate, parts [][2]int) []string {
	list := p.s.Talk.Statements
	room, said := p.limit-len(p.b)-len(secCourse)-8, make([]string, len(parts))
	for i, part := range parts {
		for _, item := range p.saidItems(all[part[0]:part[1]], part[0], false) {
			said[i] += below + item
		}
		room -= len(said[i])
	}
	z := scores{counts: make([]int, len(x.weight)), given: make([]bool, len(x.weight))}
	var out []string
	for i, part := range parts {
		line := p.stretch(x, &z, list[part[0]:part[1]], all[part[0]:part[1]], room/(len(parts)-i))
		out = append(out, line+said[i])
		room -= len(line) + 1
	}
	return out
}

// below begins a line below an item.
const below = "\n  → "

// stretches parts statements into some of about the same length, at the ends of messages.
func stretches(list []abi.LedgerText, n int) (out [][2]int) {
	left := 0
	for i := range list {
		left += len(list[i].Text)
	}
	for from := 0; from < len(list) && n > 0; n-- {
		to, size := from, 0
		for ; to < len(list) && (size < left/n || to > from && list[to].Message == list[to-1].Message); to++ {
			size += len(list[to].Text)
		}
		to = max(to, from+1)
		left -= size
		out, from = append(out, [2]int{from, to}), to
	}
	return out
}

// represent takes for each part what says most of its topics, and returns how much room that takes.
func (x *lexicon) represent(all []candidate, parts [][2]int, room int) (taken int) {
	z := scores{counts: make([]int, len(x.weight))}
	for _, part := range parts {
		list := all[part[0]:part[1]]
		z.count(list)
		var best *candidate
		most := 0.0
		for i := range list {
			c, sum := &list[i], 0.0
			for _, w := range c.words {
				if n := float64(z.counts[w]); n > 1 {
					sum += float64(n * (n / float64(x.count[w])))
				}
			}
			size := float64(x.size(c))
			if gain := float64(sum*c.factor) / math.Sqrt(size); gain > most && x.size(c) <= room/len(parts)/2 {
				best, most = c, gain
			}
		}
		z.reset()
		if best != nil {
			best.taken = true
			taken += x.size(best)
			x.heads[best.group-1] = 0
			x.show(best)
		}
	}
	return taken
}

// stretch is the line of a part of the statements, in at most so many bytes.
func (p *page) stretch(x *lexicon, z *scores, list []abi.LedgerText, all []candidate, most int) string {
	line := []byte("- " + at(list[0].Message) + " to " + at(list[len(list)-1].Message) + " " + strings.Join(loudest(list), ", ") + ":")
	head := len(line)
	add := func(words offers, most int) {
		for len(words) > 0 {
			w := words.pop().at
			if len(line)+len(x.label[w])+1 > most {
				return
			}
			line = append(append(line, ' '), x.label[w]...)
			z.counts[w], z.given[w], x.seen[w] = 0, true, true
		}
	}
	z.count(all)
	add(z.topics(x), head+min(topicRoom, (most-head)/2))
	topics := len(line)
	add(z.words(x), most-len("; also\n"))
	z.reset()
	if topics > head && len(line) > topics {
		line = slices.Insert(line, topics, []byte("; also")...)
	}
	return string(line)
}

// loudest are the few that said most.
func loudest(list []abi.LedgerText) []string {
	said := map[string]int{}
	var by []string
	for i := range list {
		name := clean(list[i].By)
		if said[name] == 0 {
			by = append(by, name)
		}
		said[name] += len(list[i].Text)
	}
	slices.SortStableFunc(by, func(a, b string) int { return said[b] - said[a] })
	return by[:min(len(by), stretchVoices)]
}

// Weights of a stretch's words.
const (
	newName   = 20  // a name that the page does not hold
	givenPart = 0.3 // a word that another stretch has
	ownPart   = .34 // of the times that a word occurs, for a topic
)

// scores are those of the words of one stretch after the other.
type scores struct {
	counts []int // zero between two stretches
	given  []bool
	held   []int
	order  offers
}

// count counts the words of statements.
func (z *scores) count(list []candidate) {
	for i := range list {
		for _, w := range list[i].words {
			if z.counts[w] == 0 {
				z.held = append(z.held, w)
			}
			z.counts[w]++
		}
	}
}

func (z *scores) reset() {
	for _, w := range z.held {
		z.counts[w] = 0
	}
	z.held = z.held[:0]
}

// offer are the words that have a score, the best first.
func (z *scores) offer(x *lexicon, score func(w int, n, own float64) float64) offers {
	z.order = z.order[:0]
	for _, w := range z.held {
		if x.kinds[w] == abi.WordBareNumber {
			continue
		}
		n := float64(z.counts[w])
		if v := score(w, n, n/float64(x.count[w])); v > 0 {
			z.order = append(z.order, offer{v, w})
		}
	}
	z.order.order()
	return z.order
}

// topics are the words that come up in the stretch more than elsewhere.
func (z *scores) topics(x *lexicon) offers {
	return z.offer(x, func(w int, n, own float64) float64 {
		if n < 2 || own < ownPart || z.given[w] {
			return 0
		}
		return n * own
	})
}

// words are those that stand out.
func (z *scores) words(x *lexicon) offers {
	return z.offer(x, func(w int, n, own float64) float64 {
		isNew := x.listed(w) && !x.seen[w]
		score := n * (.5 + own)
		switch {
		case n < 2 && !isNew:
			return 0
		case z.given[w]:
			return score * givenPart
		case isNew:
			return score * newName
		}
		return score
	})
}
