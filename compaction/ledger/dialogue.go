package ledger

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Kinds of statements.
const (
	saidDecision   = "decision"
	saidPromise    = "promise"
	saidPreference = "preference"
	saidChange     = "change"
)

// statementCues are words that mark a kind of statement, strongest kind first.
func statementCues() []struct {
	kind string
	cues []string
} {
	return []struct {
		kind string
		cues []string
	}{
		{saidChange, []string{"no longer", "changed my mind", "actually", "instead of", "used to", "not anymore", "switched", "moved to", "from now on", "correction", "changed to", "updated"}},
		{saidDecision, []string{"decided", "agreed", "agree that", "decision", "we'll go with", "let's go with", "let's do", "settled on", "the plan is", "conclusion", "approved", "voted"}},
		{saidPromise, []string{"i'll", "i will", "we'll", "we will", "i promise", "going to", "commit to", "by tomorrow", "next week", "deadline"}},
		{saidPreference, []string{"i prefer", "i like", "i love", "i hate", "favorite", "favourite", "i'd rather", "i want", "i need", "my name", "i'm allergic", "i live", "i work", "i am a"}},
	}
}

// kindOfStatement is the kind that a sentence of lower case has, empty for none.
func (l *Ledger) kindOfStatement(low string) string {
	for i := range l.said {
		if hasCue(low, l.said[i].cues) {
			return l.said[i].kind
		}
	}
	return ""
}

const (
	minStatement = 12
	longClause   = 80
	longSentence = 300
	maxSpeaker   = 120 // bytes of a name in front of a line, with what is in parentheses
)

// statement keeps a sentence of a dialogue. Of a conversation in which the agent works on files it
// keeps none: there the work is the state.
func (l *Ledger) statement(n int, by, s string) {
	if len(s) < minStatement || len(l.s.Work.Files)+len(l.s.Work.Commands) > 0 {
		return
	}
	if by != string(abi.RoleUser) && strings.HasPrefix(s, by) {
		if _, said, ok := strings.Cut(cut(s, maxSpeaker), ": "); ok {
			s = s[len(s)-len(said)-max(0, len(s)-maxSpeaker):]
		}
	}
	most := longClause
	if isPerson(by) {
		most = longSentence
	}
	for s != "" {
		said, rest := s, ""
		if isPerson(by) {
			said, rest = untilNote(s)
		}
		for said != "" {
			part := said
			if len(said) > most {
				part = said[:max(1, clauseEnd(said, most))]
			}
			l.keep(n, by, strings.TrimSpace(part))
			said = strings.TrimLeft(said[len(part):], " ")
		}
		s = rest
	}
}

// untilNote parts a sentence at a note of who wrote a talk down, such as {laughter}: what is around it was not said in one go.
func untilNote(s string) (said, rest string) {
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '{')
		if i < 0 {
			return s, ""
		}
		i += at
		end := i + 1
		for end < len(s) && letter(s[end]) {
			end++
		}
		if end > i+1 && end < len(s) && s[end] == '}' && (i == 0 || s[i-1] == ' ') && (end+1 == len(s) || s[end+1] == ' ') {
			return strings.TrimSpace(s[:i]), strings.TrimSpace(s[end+1:])
		}
		at = i + 1
	}
}

// clauseEnd is where a long sentence is cut: at the last mark before the given length, else at the first one behind it,
// so that no clause is torn.
func clauseEnd(s string, most int) int {
	after := len(s)
	for i := most / 3; i < len(s) && i < longSentence; i++ {
		n := clauseMark(s[i:])
		if n == 0 {
			continue
		}
		if i+n > most && after < len(s) {
			return after
		}
		after = i + n
		if after > most {
			return after
		}
	}
	if after == len(s) && len(s) > longSentence {
		head := cut(s, longSentence)
		if i := strings.LastIndexByte(head, ' '); i > 0 {
			return i + 1
		}
		return len(head)
	}
	return after
}

// clauseMark is the length of what ends a clause, 0 for other text.
func clauseMark(s string) int {
	if s[0] != ' ' && strings.IndexByte(",;:)", s[0]) < 0 && s[0] != "—"[0] {
		return 0
	}
	for _, mark := range []string{", ", "; ", ": ", "—", " — ", " - ", ") "} {
		if strings.HasPrefix(s, mark) {
			return len(mark)
		}
	}
	return 0
}

func (l *Ledger) keep(n int, by, s string) {
	if len(s) < minStatement {
		return
	}
	list := &l.s.Talk.Statements
	if len(*list) >= maxStatements {
		l.dropStatements()
	}
	t := abi.LedgerText{Message: n, By: by, Text: strings.Clone(s), Kind: l.kindOfStatement(strings.ToLower(s))}
	if t.Kind == saidChange {
		t.Replaces = l.earlier(&t)
	}
	*list = append(*list, t)
}

// lookBack is how many statements are searched for one that a change is about.
const lookBack = 400

// earlier finds the latest statement of the same speaker that shares two content words with a change, 0
// for none.
func (l *Ledger) earlier(t *abi.LedgerText) int {
	words := contentWords(t.Text)
	list := l.s.Talk.Statements
	for i := range slices.Backward(list[max(0, len(list)-lookBack):]) {
		o := &list[max(0, len(list)-lookBack)+i]
		if o.By != t.By || o.Message == t.Message {
			continue
		}
		low, shared := strings.ToLower(o.Text), 0
		for _, w := range words {
			if len(w) >= 5 && strings.Contains(low, w) {
				shared++
			}
		}
		if shared >= 2 {
			return o.Message
		}
	}
	return 0
}

// dropStatements forgets a third of the statements: those with the least that could be a fact.
func (l *Ledger) dropStatements() {
	list := l.s.Talk.Statements
	scores := make([]int, len(list))
	for i := range list {
		scores[i] = facts(&list[i])*len(list) + i
	}
	sorted := slices.Clone(scores)
	slices.Sort(sorted)
	floor := sorted[len(sorted)/3]
	at := -1
	l.s.Talk.Statements = slices.DeleteFunc(list, func(abi.LedgerText) bool { at++; return scores[at] < floor })
}

// facts counts what in a statement may be asked for: numbers, names, a kind.
func facts(t *abi.LedgerText) int {
	n := 0
	if t.Kind != "" {
		n += 2
	}
	for i, w := range strings.Fields(t.Text) {
		if strings.ContainsAny(w, "0123456789") {
			n += 2
		} else if i > 0 && w[0] >= 'A' && w[0] <= 'Z' && len(w) > 1 {
			n++
		}
	}
	return n
}
