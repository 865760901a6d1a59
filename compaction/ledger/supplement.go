package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// supplementHead begins what Supplement adds.
const supplementHead = "## From the log"

// Supplement renders what a state has and a text about it lacks, in at most budget bytes: the first and the latest
// request, failures that are open, the changed files, and the best names. It is empty when there is nothing, or no room.
func Supplement(s *abi.Ledger, text string, budget int) string {
	p := newPage(s, len(text)+budget)
	p.b = append(p.b, text...)
	start := len(p.b)
	p.b = append(p.b, "\n\n"+supplementHead+"\n"...)
	empty := len(p.b)
	if empty > p.limit {
		return ""
	}
	list := s.Talk.Requests
	for i := range list {
		if first, last := i == 0, i == len(list)-1; first || last {
			p.add(budget/6, p.lacking(&list[i], first && !last, budget/6))
		}
	}
	for i := range s.Work.Errors {
		if e := &s.Work.Errors[i]; e.Check && e.Passed == 0 && !strings.Contains(text, e.Key) {
			p.add(budget/8, failure(e))
		}
	}
	changed, _ := p.splitFiles()
	for _, f := range changed {
		if !strings.Contains(text, p.relative(f.Path)) {
			p.add(budget/2, p.relative(fileLine(f)))
		}
	}
	p.others()
	if len(p.b) == empty {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(p.b[start:])), "?")
}

// add appends a line of at most n bytes, if it fits.
func (p *page) add(n int, line string) {
	if line != "" && len(line) <= n && len(p.b)+len(line)+1 <= p.limit {
		p.b = append(append(p.b, line...), '\n')
	}
}

// lacking quotes a request if the page does not hold its beginning.
func (p *page) lacking(r *abi.LedgerRequest, first bool, n int) string {
	const least = 60
	if r.Text == "" || strings.Contains(string(p.b), clean(cut(r.Text, least))) {
		return ""
	}
	label := "- latest request, " + at(r.Message) + ": "
	if first {
		label = "- first request, " + at(r.Message) + ": "
	}
	q := quoteCut(r.Text, r.Size, n-len(label))
	if q == "" {
		return ""
	}
	return label + q
}
