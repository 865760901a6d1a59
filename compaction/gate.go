package compaction

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// Session is the kind of a conversation, which decides what its summary must keep.
type Session string

// Kinds of sessions.
const (
	SessionCoding   Session = "coding"
	SessionTools    Session = "tools"
	SessionDialogue Session = "dialogue"
)

// sessionOf is the kind of a conversation: with files or commands, with records that tools returned, or neither.
func sessionOf(s *abi.Ledger) Session {
	switch {
	case len(s.Work.Files)+len(s.Work.Commands) > 0:
		return SessionCoding
	case len(s.Work.Values)+len(s.Work.Lookups) > 0:
		return SessionTools
	}
	return SessionDialogue
}

// bar is how much of what the ledger's own text keeps at the same size a summary must keep at least. A summary in
// whole sentences needs more room for the same facts.
func (s Session) bar() float64 {
	if s == SessionDialogue {
		return .4
	}
	return .5
}

// needs is what an agent needs to continue a conversation, and how much of it a text has.
type needs struct{ requests, files, open, said, names Survival }

// share weighs what the conversation has: what was asked and done more than single names.
func (n *needs) share() float64 {
	sum, weights := 0.0, 0.0
	for _, part := range []struct {
		s      Survival
		weight float64
	}{{n.requests, 2}, {n.files, 3}, {n.open, 2}, {n.said, 3}, {n.names, 1}} {
		if part.s.Total > 0 {
			sum += part.weight * part.s.share()
			weights += part.weight
		}
	}
	if weights == 0 {
		return 1
	}
	return sum / weights
}

// needed counts what a text has of a state.
func needed(s *abi.Ledger, text string) needs {
	var n needs
	low := strings.ToLower(text)
	requests := s.Talk.Requests
	for i := range requests {
		if i == 0 || i == len(requests)-1 {
			n.requests.count(told(low, requests[i].Text))
		}
	}
	for i := range s.Work.Files {
		if f := &s.Work.Files[i]; f.Changes > 0 {
			n.files.count(strings.Contains(text, f.Path[strings.LastIndexByte(f.Path, '/')+1:]))
		}
	}
	n.work(s, low)
	if sessionOf(s) != SessionCoding {
		for i := range s.Talk.Statements {
			n.said.count(told(low, s.Talk.Statements[i].Text))
		}
		for i := range s.Work.Values {
			n.said.count(strings.Contains(text, s.Work.Values[i].Value))
		}
	}
	for name := range strings.FieldsSeq(ledger.Index(s, len(text))) {
		n.names.count(strings.Contains(text, name))
	}
	return n
}

// work counts what is open.
func (n *needs) work(s *abi.Ledger, low string) {
	for i := range s.Work.Errors {
		if e := &s.Work.Errors[i]; e.Check && e.Passed == 0 {
			n.open.count(told(low, e.Key))
		}
	}
	for i := range s.Talk.Tasks {
		if t := &s.Talk.Tasks[i]; t.Status != abi.TaskDone {
			n.open.count(told(low, t.Text))
		}
	}
}

func (s *Survival) count(kept bool) {
	s.Total++
	if kept {
		s.Kept++
	}
}

// told reports that a text in lower case has most of the words of another one, by its first 300 bytes: a summary may say
// the same in other words.
func told(low, of string) bool {
	const (
		head  = 300
		least = 4
	)
	total, found := 0, 0
	of = strings.ToLower(of[:min(len(of), head)])
	for w := range strings.FieldsFuncSeq(of, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) < least && !unicode.IsDigit(rune(w[0])) {
			continue
		}
		total++
		if strings.Contains(low, w) {
			found++
		}
	}
	return found*5 >= total*3
}

// judged replaces a summary that is worse than the ledger's own text, so that a bad one costs nothing but that. Below 0
// Policy.MinSurvival switches this off.
func (c *Compactor) judged(ctx context.Context, f *flight, r *abi.SummarizeRequest, state *abi.Ledger, s *abi.Summary) {
	if c.conf().Policy.MinSurvival < 0 {
		return
	}
	reason := worse(ctx, r, state, s.Text)
	if reason == "" {
		return
	}
	own, err := Ledger{}.Summarize(ctx, r)
	if err != nil {
		return
	}
	if j, ok := c.conf().Summarizer.(Judged); ok && f.main {
		j.Refused(f.version, reason)
	}
	Note(ctx, own.Policy, "in place of a summary that was refused: "+reason)
	s.Text = own.Text
}

// worse returns why a summary is worse than the ledger's own text at its size, empty when it is not. One that uses less
// than a quarter of the budget is compared with a text of that size.
func worse(ctx context.Context, r *abi.SummarizeRequest, state *abi.Ledger, text string) string {
	request := *r
	request.BudgetTokens = min(max(textTokens(text), r.BudgetTokens/4), r.BudgetTokens)
	own, err := Ledger{}.Summarize(ctx, &request)
	if err != nil {
		return "" // there is nothing to compare with
	}
	kind := sessionOf(state)
	got, could := needed(state, text), needed(state, own.Text)
	if got.share() >= kind.bar()*could.share() {
		return ""
	}
	return fmt.Sprintf("it keeps %.0f %% of what a %s session needs, the ledger's text of the same size %.0f %%", 100*got.share(), kind, 100*could.share())
}
