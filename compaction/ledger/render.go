package ledger

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// mostAtOnce bounds the room that a page gets at once, in bytes.
const mostAtOnce = 64 << 10

func newPage(s *abi.Ledger, budget int) *page {
	p := &page{s: s, b: make([]byte, 0, min(max(budget, 0), mostAtOnce)), limit: budget, shown: map[string]bool{}, quoted: map[int]bool{}, share: sharesFor(s, budget)}
	p.dir = p.folder()
	p.names = namesFor(best(s), budget)
	if p.share.talk {
		p.voices = voices(s.Talk.Statements)
	}
	return p
}

// MinBudget is the least number of bytes for which Render writes anything: the number of the latest message, which
// recall reads. Below leastPage there is room for the request and no more.
const (
	MinBudget = 30
	leastPage = 120
)

// Render writes a state as text, in at most budget bytes: the same bytes for the same state and
// budget. Below [MinBudget] it is empty.
func Render(s *abi.Ledger, budget int) string {
	if budget < MinBudget {
		return ""
	}
	p := newPage(s, budget)
	if p.share.talk && budget >= askedPage && len(s.Work.Values) > 0 {
		p.share.requests = askedPart
	}
	p.head()
	if budget < leastPage {
		p.request()
		return strings.TrimSpace(valid(string(p.b)))
	}
	p.rules = p.keptRules()
	if !p.brief() && !p.unasked() {
		p.goals()
	}
	p.section(secOpen, p.share.open, p.open())
	p.section(secPlan, p.share.plan, p.quotation(s.Talk.Plan, p.share.plan, secPlan))
	p.section(secBefore, p.beforeShare(), p.quotation(s.Talk.Before, p.beforeShare(), secBefore))
	p.section(secRules, p.share.rules, p.rules)
	p.section(secRequests, p.share.requests, p.requests())
	switch {
	case !p.share.talk:
		p.section(secSteps, p.share.steps, p.steps())
	case len(p.s.Work.Values) > 0:
		p.tools()
	default:
		p.dialogue()
	}
	p.files()
	p.section(secCommits, p.share.commits, p.commits())
	p.section(secCommands, p.share.commands, p.commands())
	p.section(secErrors, p.share.errors, p.errors())
	p.section(secFindings, p.share.findings, p.findings())
	p.section(secLookups, p.share.lookups, p.lookups())
	if p.brief() && !p.unasked() {
		p.latest()
	}
	p.others()
	return valid(strings.TrimRight(string(p.b), "\n"))
}

// valid is a text without broken characters, of which it seldom has one.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "?")
}

// request quotes the first request in what room there is.
func (p *page) request() {
	i := slices.IndexFunc(p.s.Talk.Requests, func(r abi.LedgerRequest) bool { return r.Text != "" })
	if i < 0 {
		return
	}
	r, empty := &p.s.Talk.Requests[i], len(p.b)
	p.b = append(p.b, "## "+secGoal+"\n"...)
	mark := len(p.b)
	p.goalItem("- Request, ", r, p.limit-mark-len("- Request, : \n")-len(at(r.Message)))
	if len(p.b) == mark {
		p.b = p.b[:empty]
	}
}

// quotation is one text as the only item of a section, none if there is no room.
func (p *page) quotation(t *abi.LedgerText, share float64, title string) []string {
	if t == nil {
		return nil
	}
	q := quoteCut(t.Text, t.Size, int(share*float64(p.limit))-len(title)-20)
	if q == "" {
		return nil
	}
	return []string{"- " + at(t.Message) + " " + q}
}

// beforeShare is the share of a summary by another program: some sentences on a small page too, since nothing else
// holds what came before.
func (p *page) beforeShare() float64 { return max(.06, min(.25, 400/float64(p.limit))) }

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
	if p.limit >= tinyPage { // there the handles explain themselves
		p.b = append(p.b, headEnd...)
	}
	p.b = append(p.b, '\n')
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

// brief reports a tiny page of what was said, on which what people said comes before requests.
func (p *page) brief() bool {
	return p.share.talk && p.limit < tinyPage && len(p.s.Work.Values) == 0
}

// goals quotes the first and the latest request.
func (p *page) goals() {
	list := slices.DeleteFunc(slices.Clone(p.s.Talk.Requests), func(r abi.LedgerRequest) bool { return r.Text == "" })
	if len(list) == 0 {
		return
	}
	least := p.share.least
	switch {
	case p.share.talk:
		least = min(least, p.limit/14)
	case p.limit < 2000:
		least = min(least, p.limit/8)
	}
	most := max(least, int(p.share.goal*float64(p.limit))/2) + len(openQuote+closeQuote+cutMark) + len(" (10000 characters)")
	if p.share.talk && p.share.requests > 0 { // thanks ask for nothing
		for len(list) > 1 && thanks(list[len(list)-1].Text) {
			list = list[:len(list)-1]
		}
	}
	for len(list) > 2 && bareCommand(list[0].Text) { // says less than what came behind it
		list = list[1:]
	}
	first, last := &list[0], &list[len(list)-1]
	p.b = append(p.b, "\n## "+secGoal+"\n"...)
	if p.share.talk && p.limit < tinyPage {
		p.goalItem(firstLabel, first, most)
		return
	}
	if len(list) > 1 {
		p.goalItem(firstLabel, first, most)
		p.goalItem(latestLabel, last, most)
		return
	}
	if !p.share.small {
		most = max(most*2, p.limit/3)
	}
	p.goalItem("- Request, ", first, most)
}

// latest quotes the latest request if there is room for most of it and the page does not hold its beginning.
func (p *page) latest() {
	r := p.s.Talk.Requests
	head := "\n## " + secGoal + "\n"
	if len(r) == 0 || strings.Contains(string(p.b), clean(cut(r[len(r)-1].Text, leastPage/3))) {
		return
	}
	most := p.limit - len(p.b) - len(head+"- Latest request, : \n") - len(at(r[len(r)-1].Message))
	if most > min(leastPage/2, len(r[len(r)-1].Text)) {
		p.b = append(p.b, head...)
		p.goalItem(latestLabel, &r[len(r)-1], most)
	}
}

func (p *page) goalItem(label string, r *abi.LedgerRequest, most int) {
	text := label + at(r.Message) + ": "
	q := quoteLines(r.Text, r.Size, most, p.share.least)
	if q == "" || len(p.b)+len(text)+len(q)+1 > p.limit {
		return
	}
	p.b = append(append(append(p.b, text...), q...), '\n')
	if !p.share.talk && p.limit >= tinyPage {
		if end := ending(r, q); end != "" && !slices.Contains(p.rules, textItem(r.Message, end, 0)) {
			p.below(atItsEnd + quoteCut(end, 0, most))
		}
	}
	whole := true
	if r.Question != nil && len(r.Text) < 200 {
		whole = p.below(asked(r.Question, 240))
	}
	if p.share.requests == 0 || p.share.small && label == firstLabel { // nothing says below what became of it
		p.quoted[r.Message] = p.share.small
		return
	}
	for _, text := range p.became(r) {
		if p.share.talk && !strings.HasPrefix(text, theAgent) {
			continue
		}
		whole = p.below(text) && whole
	}
	if whole {
		p.noteQuoted(r)
	}
}

// Labels of the requests that the goal quotes.
const (
	firstLabel  = "- First request, "
	latestLabel = "- Latest request, "
)

// noteQuoted notes that the page quotes a request, and what the agent wrote last about it.
func (p *page) noteQuoted(r *abi.LedgerRequest) {
	p.quoted[r.Message] = true
	if r.Outcome != nil {
		p.quoted[r.Outcome.Message] = true
	}
}

// below appends a line that belongs to an item, and reports whether there was room for it.
func (p *page) below(text string) bool {
	if len(p.b)+len("  → ")+len(text)+1 > p.limit {
		return false
	}
	p.b = append(append(append(p.b, "  → "...), text...), '\n')
	return true
}

// thanks reports a text that is one sentence, and only thanks, as far as its beginning shows.
func thanks(text string) bool {
	low := strings.ToLower(strings.TrimSpace(text))
	if i := strings.Index(low, "###"); i > 0 && strings.HasSuffix(low, "###") { // with which a program ends that speaks for a user
		low = strings.TrimSpace(low[:i])
	}
	return len(text) < maxThanks && sentenceEnd(low) == len(low) && !strings.ContainsAny(low, ",;:\n?0123456789") &&
		startsWith(low, []string{"thank you for", "thank you so", "thank you very", "thanks for", "thanks a lot", "i really appreciate", "i appreciate"}) &&
		!hasCue(low, []string{"please", "but", "also", "if", "now", "can", "could", "would", "need", "want", "then", "and"})
}

const maxThanks = 160

// atItsEnd begins the line with the last sentence of a request.
const atItsEnd = "at its end: "

// ending is the last sentence of a request of which the beginning alone is quoted, unless that holds it: what is asked is
// often behind what was pasted.
func ending(r *abi.LedgerRequest, shown string) string {
	if !strings.HasSuffix(shown, cutMark) && !strings.HasSuffix(shown, " characters)") {
		return ""
	}
	if strings.Contains(shown, r.End) {
		return ""
	}
	return r.End
}

// quoteLines is quoteCut, but shows at least so many bytes of a text of many lines, whose
// indentation would take the room.
func quoteLines(s string, size, n, least int) string {
	head := cut(s, min(least, len(s)))
	return quoteCut(s, size, n+min(strings.Count(head, "\n")*len(margin), n))
}

// hadAsked and hadSaid begin what the agent wrote before a request.
const (
	hadAsked = "the agent had asked at "
	hadSaid  = "the agent had said at "
)

func asked(q *abi.LedgerText, n int) string {
	verb := hadAsked
	if !strings.Contains(q.Text, "?") {
		verb = hadSaid
	}
	return verb + at(q.Message) + ": " + quoteCut(q.Text, q.Size, n)
}
