package ledger

import (
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// namesFor are those of the best names that a page may need. It lists or holds nearly all that it looks at, so that they are
// not much longer than the page.
func namesFor(list []ranked, budget int) []ranked {
	room := budget*9/10 + 2500
	for i := range list {
		if room -= len(list[i].name.Text) + 1; room < 0 {
			return list[:i]
		}
	}
	return list
}

// Bytes of texts that a page shows at most, and some more.
const (
	shownRequest = 320
	shownStep    = 400
)

// Trim leaves out of a state what a rendering under the budget does not show, and returns the rest, which
// renders as the whole does. It shares memory with the state.
func Trim(s abi.Ledger, budget int) abi.Ledger {
	p := newPage(&s, budget)
	out := s
	out.Calls, out.Names = nil, make([]abi.LedgerName, len(p.names))
	for i := range p.names { // by their ranks, so that a rendering finds them in its order
		out.Names[i] = *p.names[i].name
	}
	out.Talk.Rules = p.trimTexts(s.Talk.Rules, p.share.rules, p.ruleScore())
	out.Talk.Findings = p.trimTexts(s.Talk.Findings, p.share.findings, p.findingScore())
	switch {
	case p.share.talk && len(s.Work.Values) > 0:
		return out
	case p.share.talk:
		out.Talk.Words = talkWords(s.Talk.Statements)
	default:
		out.Talk.Statements = nil
	}
	out.Talk.Requests = trimRequests(s.Talk.Requests)
	out.Steps = slices.Clone(s.Steps)
	for i := range out.Steps[:max(0, len(out.Steps)-1)] {
		switch st := &out.Steps[i]; {
		case !p.share.talk:
			st.Text, st.Size = trimText(st.Text, st.Size, shownStep)
		case st.By != abi.RoleTool:
			st.Text = ""
		}
	}
	return out
}

// trimTexts leaves the candidates of a section.
func (p *page) trimTexts(list []abi.LedgerText, share float64, score func(*abi.LedgerText) float64) []abi.LedgerText {
	order := ordered(list, score)
	order = order[:candidates(list, order, int(share*float64(p.limit))-48)]
	slices.Sort(order)
	out := make([]abi.LedgerText, len(order))
	for i, at := range order {
		out[i] = list[at]
	}
	return out
}

// trimRequests cuts all but the first and the latest.
func trimRequests(list []abi.LedgerRequest) []abi.LedgerRequest {
	out := slices.Clone(list)
	for i := range out {
		r := &out[i]
		if i > 0 && i < len(out)-1 {
			r.Text, r.Size = trimText(r.Text, r.Size, shownRequest)
		}
	}
	return out
}

// trimText cuts a text, and notes its size.
func trimText(s string, size, n int) (string, int) {
	if len(s) <= n {
		return s, size
	}
	if size == 0 {
		size = len(s)
	}
	return cut(s, n), size
}
