package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// What counts in a dialogue with tools. What the agent passed to a tool or the user wrote counts most, then what the
// agent told the user; of what tools returned most is never needed again.
const (
	ownUse     = 2
	agentUse   = 1
	noUse      = 0.5
	plainPart  = 0.2 // a word that is no id, date or amount
	lookPart   = 0.5 // a call that changes nothing
	failedPart = 0.3 // a call that failed
	userSaid   = 0.5
	agentSaid  = 0.1
	otherPart  = 0.5  // a record whose id only tools wrote
	askedPart  = 0.15 // of a page of askedPage and more: requests and what became of them
	askedPage  = 1500
	toolsPart  = 0.85 // of the room: the rest has names
	mostNames  = 100  // bytes of that, on a long page
	donePart   = 0.5  // of that: calls that changed something, the latest first
)

// record is what is known of a record.
type record struct {
	owner  string
	latest int
	values []int // their places among the values
	first  int   // the candidate of the first one
}

func (o *record) head() string { return "- " + line(o.owner, 120) + " (" + at(o.latest) + "): " }

// records are those of the ledger, those that were read last first.
func (p *page) records() []*record {
	var out []*record
	by := map[string]*record{}
	for i := range p.s.Work.Values {
		v := &p.s.Work.Values[i]
		o := by[v.Owner]
		if o == nil {
			o = &record{owner: v.Owner}
			by[v.Owner], out = o, append(out, o)
		}
		o.values, o.latest = append(o.values, i), max(o.latest, v.Message)
	}
	slices.SortStableFunc(out, func(a, b *record) int { return cmp.Compare(b.latest, a.latest) })
	return out
}

// recordValue is a value with its key, and the value that it replaced.
func recordValue(v *abi.LedgerValue) string {
	out := line(v.Key, 80) + " " + line(v.Value, maxValue)
	if v.Before != "" {
		out += " (was " + line(v.Before, 60) + ")"
	}
	return out
}

// tools shows a dialogue with tools: calls, values of records with their owners, and sentences, chosen together by the
// names and numbers that they hold.
func (p *page) tools() {
	x := newLexicon(0)
	steps, all := p.toolSteps(x)
	said := len(all)
	all = p.toolTalk(x, all)
	values := len(all)
	p.useNames(x)
	list := p.records()
	all = p.toolValues(x, all, list)
	x.weigh(all)
	for i := range x.value {
		x.value[i] *= noUse + x.used[i]
		if !isID(x.form[i]) {
			x.value[i] *= plainPart
		}
	}
	p.showGoal(x)
	room := p.limit - len(p.b) - len(secSteps+secValues+secStatement) - 30
	room -= min(int((1-toolsPart)*float64(room)), mostNames)
	x.choose(all, room-p.done(x, all[:said], int(donePart*float64(room))))
	for i := range steps {
		if !all[i].taken {
			steps[i] = ""
		}
	}
	p.rankByUse(x)
	p.section(secSteps, 1, steps)
	p.section(secValues, 1, p.recordItems(list, all))
	p.said(all[said:values])
}

// showGoal notes the words of the requests that the page quotes already.
func (p *page) showGoal(x *lexicon) {
	quoted := strings.ToLower(string(p.b))
	for w, id := range x.ids {
		if id != noFact && strings.Contains(quoted, w) {
			x.seen[id] = true
		}
	}
}

// toolSteps are the calls, in their order.
func (p *page) toolSteps(x *lexicon) (items []string, all []candidate) {
	items, all = make([]string, len(p.s.Steps)), make([]candidate, len(p.s.Steps))
	for i := range p.s.Steps {
		s := &p.s.Steps[i]
		if s.By != abi.RoleTool {
			continue
		}
		items[i] = p.stepItem(s, false)
		c := &all[i]
		c.words, c.size, c.factor = x.words(s.Text), len(items[i])+1, .7+float64(.3*p.recency(s.Message))
		if looks(s.Text) {
			c.factor *= lookPart
		}
		if strings.HasPrefix(s.Result, abi.CommandFailed) {
			c.factor *= failedPart
		}
		x.use(c.words, ownUse)
		if strings.HasPrefix(s.Result, openQuote) {
			result := x.words(s.Result)
			x.use(result, agentUse)
			for _, w := range result {
				if !slices.Contains(c.words, w) {
					c.words = append(c.words, w)
				}
			}
		}
	}
	return items, all
}

// toolTalk adds what was said.
func (p *page) toolTalk(x *lexicon, all []candidate) []candidate {
	for i := range p.s.Talk.Statements {
		t := &p.s.Talk.Statements[i]
		c := candidate{words: x.words(t.Text), size: len(t.Text) + lineCost, factor: userSaid}
		if t.By == string(abi.RoleAssistant) {
			c.factor = agentSaid
			x.use(c.words, agentUse)
		} else {
			x.use(c.words, ownUse)
		}
		all = append(all, c)
	}
	return all
}

// useNames notes who wrote names, also in messages that are not kept.
func (p *page) useNames(x *lexicon) {
	for i := range p.s.Names {
		n := &p.s.Names[i]
		var weight float64
		switch {
		case n.Call || n.User:
			weight = ownUse
		case n.Agent:
			weight = agentUse
		}
		x.use([]int{x.id(n.Text, strings.ToLower(n.Text))}, weight)
	}
}

// toolValues adds the values of records.
func (p *page) toolValues(x *lexicon, all []candidate, list []*record) []candidate {
	for g, o := range list {
		id := x.words(o.owner)
		factor := otherPart
		for _, w := range id {
			if x.used[w] == ownUse {
				factor = 1
			}
		}
		x.heads = append(x.heads, len(o.head()))
		o.first = len(all)
		for _, i := range o.values {
			text := recordValue(&p.s.Work.Values[i])
			words := x.words(text)
			for _, w := range id {
				if !slices.Contains(words, w) {
					words = append(words, w)
				}
			}
			all = append(all, candidate{words: words, size: len(text) + 2, factor: factor, group: g + 1})
		}
	}
	return all
}

// done takes the latest calls that changed something, and returns how many bytes they take.
func (p *page) done(x *lexicon, all []candidate, room int) int {
	used := 0
	for i := range slices.Backward(all) {
		s := &p.s.Steps[i]
		if s.By != abi.RoleTool || looks(s.Text) || strings.HasPrefix(s.Result, abi.CommandFailed) || used+all[i].size > room {
			continue
		}
		all[i].taken = true
		used += all[i].size
		x.show(&all[i])
	}
	return used
}

// recordItems puts the chosen values of a record on a line, those that changed first.
func (p *page) recordItems(list []*record, all []candidate) []string {
	var out []string
	for _, o := range list {
		var values, changed []string
		for k, i := range o.values {
			v := &p.s.Work.Values[i]
			switch {
			case !all[o.first+k].taken:
			case v.Before != "":
				changed = append(changed, recordValue(v))
			default:
				values = append(values, recordValue(v))
			}
		}
		values = append(changed, values...)
		if len(values) > 0 {
			out = append(out, o.head()+strings.Join(values, "; "))
		}
	}
	return out
}

// rankByUse orders the names of the page by who used them, and ids before plain ones.
func (p *page) rankByUse(x *lexicon) {
	for i := range p.names {
		n := &p.names[i]
		id := x.id(n.name.Text, strings.ToLower(n.name.Text))
		n.rank = noUse + x.used[id]
		if !isID(n.name.Text) {
			n.rank *= plainPart
		}
	}
	slices.SortStableFunc(p.names, func(a, b ranked) int { return cmp.Compare(b.rank, a.rank) })
}

// isID reports a word that is likely an id, a date or an amount: one with digits that is neither short nor a time.
func isID(w string) bool {
	return len(w) >= minToken && strings.ContainsAny(w, "0123456789") && !measure(w) && !moment(w)
}

// moment reports a time of the day, with or without the date: when something was noted, which no later call needs.
func moment(w string) bool {
	hour, rest, ok := strings.Cut(w[strings.LastIndexByte(w, 'T')+1:], ":")
	return ok && len(hour) == 2 && len(rest) >= 2 && isDigitByte(hour[0]) && isDigitByte(hour[1]) && isDigitByte(rest[0]) && isDigitByte(rest[1])
}

// lookVerbs begin the names of tools that change nothing.
const lookVerbs = " get list find search read lookup look fetch query check show view calculate compute think count describe "

// looks reports a call that changes nothing, as far as the verb in its name tells.
func looks(step string) bool {
	name, _, _ := strings.Cut(step, " ")
	verb, _, _ := strings.Cut(strings.ToLower(name), "_")
	return strings.Contains(lookVerbs, " "+verb+" ")
}

// fieldNames adds what the fields of records are called to the names that a page need not list.
func (p *page) fieldNames(held *holding) {
	for i := range p.s.Work.Values {
		v := &p.s.Work.Values[i]
		for k := range strings.SplitSeq(v.Key, ".") {
			if isField(k) { // an id that is a key is something's name
				held.note(k)
			}
		}
		for part := range strings.SplitSeq(v.Value, ", ") {
			if k, _, ok := strings.Cut(part, " "); ok && !isID(k) {
				held.note(k)
			}
		}
	}
}

// isField reports the name of a field: it may end with a number, but has none inside, not the long one of an id, and no
// capitals alone.
func isField(key string) bool {
	stem := strings.TrimRight(key, "0123456789")
	return !isID(key) || !strings.ContainsAny(stem, "0123456789") && len(key)-len(stem) < 3 && key != strings.ToUpper(key)
}
