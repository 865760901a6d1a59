package ledger

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// shares are the parts of a page that sections may use.
type shares struct {
	goal, open, plan, rules, requests, steps, files, commits, commands, errors, findings, lookups, values, statements float64
	// least is how many bytes of the first and of the latest request are shown, and a word more.
	least int
	small bool
	talk  bool
}

func normalShares() shares {
	return shares{
		goal: .12, open: .10, plan: .06, rules: .04, requests: .10, steps: .10, files: .30, commits: .04, commands: .04, errors: .03, findings: .05, lookups: .03,
		values: .03, least: 330,
	}
}

// smallShares are those of a page that is too short for prose.
func smallShares() shares {
	return shares{goal: .05, open: .06, rules: .03, requests: .02, steps: .03, files: .10, commits: .02, least: 330, small: true}
}

// Pages below smallPage bytes are small, and those below a smallPart of what was read. From fullPage
// on prose has its whole share, on a page between it has less.
const (
	smallPage = 5000
	fullPage  = 20000
	smallPart = 60
)

// tinyTalk is below how many bytes a page about a dialogue with tools has more names than sentences.
const tinyTalk = 1200

// talkShares are those of a conversation without files and commands. With records, what the tools were
// asked comes first.
func talkShares(records, tiny bool) shares {
	out := shares{goal: .04, open: .05, plan: .06, steps: .15, lookups: .06, statements: .9, least: 330, talk: true}
	switch {
	case records && tiny:
		out.goal, out.steps, out.values, out.statements = .08, .3, .2, .05
	case records:
		out.goal, out.steps, out.values, out.statements = .08, .5, .1, .05
	}
	return out
}

func sharesFor(s *abi.Ledger, budget int) shares {
	read := s.Bytes
	if len(s.Work.Files)+len(s.Work.Commands) == 0 {
		return talkShares(len(s.Work.Values) > 0, budget < tinyTalk)
	}
	if budget < smallPage || int64(budget)*smallPart < read {
		return smallShares()
	}
	out := normalShares()
	part := min(1, .5+.5*float64(budget-smallPage)/(fullPage-smallPage))
	for _, share := range []*float64{&out.goal, &out.open, &out.rules, &out.requests, &out.steps, &out.commands, &out.errors, &out.findings} {
		*share *= part
	}
	return out
}

func newPage(s *abi.Ledger, budget int) *page {
	p := &page{s: s, limit: budget, shown: map[string]bool{}, share: sharesFor(s, budget)}
	p.dir = p.folder()
	p.names = best(s, namesFor(budget))
	return p
}

// MinBudget is the least number of bytes for which Render writes anything.
const MinBudget = 120

// Render writes a state as text, in at most budget bytes: the same bytes for the same state and
// budget. Below [MinBudget] it is empty.
func Render(s *abi.Ledger, budget int) string {
	if budget < MinBudget {
		return ""
	}
	p := newPage(s, budget)
	p.head()
	p.goal()
	p.section(secOpen, p.share.open, p.open())
	if s.Talk.Plan != nil {
		p.section(secPlan, p.share.plan, []string{"- " + at(s.Talk.Plan.Message) + " " + quoteCut(s.Talk.Plan.Text, s.Talk.Plan.Size, int(p.share.plan*float64(budget))-30)})
	}
	if b := s.Talk.Before; b != nil {
		p.section(secBefore, .06, []string{"- " + at(b.Message) + " " + quoteCut(b.Text, b.Size, int(.06*float64(budget))-60)})
	}
	p.section(secRules, p.share.rules, p.rules())
	p.section(secRequests, p.share.requests, p.requests())
	p.section(secSteps, p.share.steps, p.steps())
	p.files()
	p.section(secCommits, p.share.commits, p.commits())
	p.section(secCommands, p.share.commands, p.commands())
	p.section(secErrors, p.share.errors, p.errors())
	p.section(secFindings, p.share.findings, p.findings())
	p.section(secLookups, p.share.lookups, p.lookups())
	p.section(secValues, p.share.values, p.values())
	p.section(secStatement, p.share.statements, p.statements())
	p.others()
	return strings.ToValidUTF8(strings.TrimRight(string(p.b), "\n"), "?")
}

func (p *page) head() {
	p.b = append(p.b, headStart+strconv.Itoa(p.s.Messages)...)
	switch {
	case p.dir == "" || len(p.dir) >= p.limit/8:
	case p.s.Folder != "":
		p.b = append(p.b, headFolder+line(p.dir, maxPath)...)
	default:
		p.b = append(p.b, headBelow+line(p.dir, maxPath)...)
	}
	if p.s.Branch != "" && len(p.s.Branch) < p.limit/8 {
		p.b = append(p.b, headBranch+line(p.s.Branch, maxLine)...)
	}
	p.b = append(p.b, headEnd+"\n"...)
	if len(p.b) > p.limit {
		p.b = p.b[:0]
	}
}

// folder is the working directory, or the deepest one that holds most of the changed files.
func (p *page) folder() string {
	if p.s.Folder != "" {
		return p.s.Folder
	}
	counts := map[string]int{}
	all := 0
	for i := range p.s.Work.Files {
		f := &p.s.Work.Files[i]
		if !strings.HasPrefix(f.Path, "/") || f.Changes == 0 {
			continue
		}
		all++
		for d := f.Path; strings.Count(d, "/") > 2; {
			d = d[:strings.LastIndexByte(d, '/')]
			counts[d]++
		}
	}
	best := ""
	for d, n := range counts {
		if n*4 >= all*3 && len(d) > len(best) && all > 1 && len(d) <= maxPath {
			best = d
		}
	}
	return best
}

// goal quotes the first and the latest request.
func (p *page) goal() {
	list := p.s.Talk.Requests
	if len(list) == 0 {
		return
	}
	least := p.share.least
	if p.limit < 2000 || p.share.talk {
		least = min(least, p.limit/14)
	}
	most := max(least, int(p.share.goal*float64(p.limit))/2) + len(openQuote+closeQuote+cutMark) + len(" (10000 characters)")
	first, last := &list[0], &list[len(list)-1]
	p.b = append(p.b, "\n## "+secGoal+"\n"...)
	if len(list) > 1 {
		p.goalItem("- First request, ", first, most)
		p.goalItem("- Latest request, ", last, most)
		return
	}
	p.goalItem("- Request, ", first, 2*most)
}

func (p *page) goalItem(label string, r *abi.LedgerRequest, most int) {
	text := label + at(r.Message) + ": "
	q := quoteLines(r.Text, r.Size, most, p.share.least)
	if q == "" || len(p.b)+len(text)+len(q)+1 > p.limit {
		return
	}
	p.b = append(append(append(p.b, text...), q...), '\n')
	if r.Question != nil && len(r.Text) < 200 {
		if a := "  → " + asked(r.Question, 240) + "\n"; len(p.b)+len(a) <= p.limit {
			p.b = append(p.b, a...)
		}
	}
}

// quoteLines is quoteCut, but shows at least so many bytes of a text of many lines, whose
// indentation would take the room.
func quoteLines(s string, size, n, least int) string {
	head := cut(s, min(least, len(s)))
	return quoteCut(s, size, n+min(strings.Count(head, "\n")*len(margin), n))
}

func asked(q *abi.LedgerText, n int) string {
	return "the agent had asked at " + at(q.Message) + ": " + quoteCut(q.Text, q.Size, n)
}

// open lists what is not finished.
func (p *page) open() []string {
	var out []string
	t := &p.s.Talk
	for _, state := range []string{abi.TaskDoing, abi.TaskOpen} {
		for i := range t.Tasks {
			if task := &t.Tasks[i]; task.Status == state {
				out = append(out, "- ["+state+"] "+numbered(task.ID)+line(task.Text, maxLine))
			}
		}
	}
	if q := t.Question; q != nil {
		out = append(out, "- the agent asked at "+at(q.Message)+": "+quoteCut(q.Text, q.Size, 260))
	}
	for i := range slices.Backward(p.s.Work.Errors) {
		e := &p.s.Work.Errors[i]
		recent := e.Message >= p.s.Messages-p.s.Messages/10-10
		if e.Passed != 0 || !e.Check && !recent && (e.Runs < 2 || readsOnly(e.Key)) {
			continue
		}
		out = append(out, failure(e))
	}
	return append(out, stopped(t.Requests, int(p.share.open*float64(p.limit))/300)...)
}

// maxStopped is how many requests that were stopped are quoted at most.
const maxStopped = 8

// stopped lists the requests that were stopped: the latest n are quoted, of older ones the number is given.
func stopped(list []abi.LedgerRequest, n int) []string {
	n = max(3, min(n, maxStopped))
	var out []string
	older := ""
	for i := range slices.Backward(list) {
		r := &list[i]
		switch {
		case r.Stopped == 0:
		case len(out) < n:
			out = append(out, "- stopped at "+at(r.Stopped)+": request "+at(r.Message)+" "+quoteCut(firstLine(r.Text), 0, 90))
		case len(older) < 400:
			older += " " + at(r.Message)
		}
	}
	if older != "" {
		out = slices.Insert(out, 0, stoppedEarlier+older)
	}
	return out
}

// stoppedEarlier begins the list of those that are not quoted.
const stoppedEarlier = "- stopped earlier: requests"

func failure(e *abi.LedgerError) string {
	out := "- failed at " + at(e.Message) + ", not seen to pass since: `" + line(e.Key, 160) + "`"
	if e.Line != "" {
		out += "\n  → " + quoteCut(e.Line, 0, 200)
	}
	if len(e.Edits) > 0 {
		out += "\n  → changed since: " + baseNames(e.Edits, 4)
	}
	return out
}

func numbered(id string) string {
	if id == "" {
		return ""
	}
	return "#" + line(id, 40) + " "
}

// baseNames lists files by their last element.
func baseNames(list []string, n int) string {
	var b strings.Builder
	for i, f := range list {
		if i == n && len(list) > n+1 {
			b.WriteString(" and " + strconv.Itoa(len(list)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(line(base(f), 80))
	}
	return b.String()
}

// recency is from 0 to 1.
func (p *page) recency(m int) float64 { return float64(m) / float64(max(p.s.Messages, 1)) }

// rules are the newest and the strongest, in order of their importance.
func (p *page) rules() []string {
	return p.byScore(p.s.Talk.Rules, p.share.rules, p.ruleScore())
}

func (p *page) ruleScore() func(*abi.LedgerText) float64 {
	strong := strongCues()
	return func(r *abi.LedgerText) float64 {
		score := p.recency(r.Message)
		if r.Kind == "refusal" || hasCue(strings.ToLower(r.Text), strong) {
			score += .5
		}
		return score
	}
}

// byScore quotes the texts of the highest scores that fit into a share, in order of messages.
func (p *page) byScore(list []abi.LedgerText, share float64, score func(*abi.LedgerText) float64) []string {
	order := ordered(list, score)
	room := int(share*float64(p.limit)) - 48
	items := make([]string, len(list))
	for _, i := range order[:candidates(list, order, room)] {
		t := &list[i]
		item := "- " + at(t.Message) + " " + quoteCut(t.Text, t.Size, maxSentence)
		if len(item)+1 <= room {
			room -= len(item) + 1
			items[i] = item
		}
	}
	return items
}

// ordered returns the places of texts by their scores, the newest first among equals.
func ordered(list []abi.LedgerText, score func(*abi.LedgerText) float64) []int {
	scores, order := make([]float64, len(list)), make([]int, len(list))
	for i := range list {
		scores[i], order[i] = score(&list[i]), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a)) })
	return order
}

// candidates is how many of the best texts are looked at to fill a room: those that would fill it twice.
func candidates(list []abi.LedgerText, order []int, room int) int {
	sum := 0
	for n, i := range order {
		if sum > 2*room {
			return n
		}
		sum += len(list[i].Text)
	}
	return len(order)
}

func (p *page) findings() []string {
	return p.byScore(p.s.Talk.Findings, p.share.findings, p.findingScore())
}

// findingScore weighs a finding by its age and by how many of the best names it holds.
func (p *page) findingScore() func(*abi.LedgerText) float64 {
	top := make(map[string]bool, len(p.names))
	for i := range p.names[:min(len(p.names), p.limit/24)] {
		top[p.names[i].name.Text] = true
	}
	c := newClasses()
	return func(t *abi.LedgerText) float64 {
		n := 0
		for sc := (scanner{c: c, s: t.Text}); ; {
			k, ok := sc.next()
			if !ok {
				break
			}
			if top[k] {
				n++
			}
		}
		return float64((.4 + p.recency(t.Message)) * (1 + float64(.3*float64(n))))
	}
}
