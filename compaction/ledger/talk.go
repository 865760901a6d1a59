package ledger

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// current is the request under way, nil before the first.
func (l *Ledger) current() *abi.LedgerRequest {
	if n := len(l.s.Talk.Requests); n > 0 {
		return &l.s.Talk.Requests[n-1]
	}
	return nil
}

// userText reads a message that stands as the user's in the log.
func (l *Ledger) userText(n int, text string) {
	if l.summary(n, text) {
		return
	}
	own := l.ownWords(text)
	if own == "" {
		l.shown(n, text)
		if strings.HasPrefix(text, "[Request interrupted") {
			if r := l.current(); r != nil && r.Stopped == 0 {
				r.Stopped = n
			}
		}
		return
	}
	if len(own) < len(text) {
		l.shown(n, text)
	}
	l.dropCommand()
	by := byUser
	if bareCommand(own) {
		by = byResult
	}
	l.names.read(own, n, by, "")
	l.request(n, own)
	l.sentencesOf(n, own)
	l.step(abi.LedgerStep{Message: n, By: abi.RoleUser, Text: clip(own, maxStep), Size: sizeOf(own, maxStep)})
}

// planNote is what Claude Code writes behind a plan that the user accepted.
const planNote = "\n\nIf you need specific details from before exiting plan mode"

// between is what stands between two marks, empty if they are not there.
func between(text, open, end string) string {
	_, rest, ok := strings.Cut(text, open)
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, end)
	return strings.TrimSpace(rest)
}

// ownWords is the part of a text that the user wrote, empty for none.
func (l *Ledger) ownWords(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "<command-") {
		if args := between(text, "<command-args>", "</command-args>"); args != "" {
			return args
		}
		return between(text, "<command-name>", "</command-name>")
	}
	if before, _, noted := strings.Cut(text, planNote); noted {
		text = strings.TrimSpace(before)
	}
	for strings.HasPrefix(text, "<system-reminder>") {
		_, rest, ok := strings.Cut(text, "</system-reminder>")
		if !ok {
			return ""
		}
		text = strings.TrimSpace(rest)
	}
	if startsWith(text, l.cues.notUser) {
		return ""
	}
	if i := strings.Index(text, "<system-reminder>"); i > 0 {
		text = strings.TrimSpace(text[:i])
	}
	return text
}

// bareCommand reports a command without arguments. It may be for the agent's own program, as /model is, or a task, as /review
// is: then a step of the agent follows.
func bareCommand(text string) bool {
	return len(text) <= 24 && strings.HasPrefix(text, "/") && !strings.ContainsAny(text[1:], "/. \n")
}

// dropCommand forgets the request under way if it is a bare command that no step followed.
func (l *Ledger) dropCommand() {
	r, k, t := l.current(), len(l.s.Steps)-1, &l.s.Talk
	if r == nil || !bareCommand(r.Text) || k < 0 || l.s.Steps[k].By != abi.RoleUser || l.s.Steps[k].Message != r.Message {
		return
	}
	n := r.Message
	l.s.Steps, t.Question, t.Requests = l.s.Steps[:k], r.Question, t.Requests[:len(t.Requests)-1]
	if before := l.current(); before != nil && before.Stopped == n {
		before.Stopped = 0
	}
	t.Statements = slices.DeleteFunc(t.Statements, func(s abi.LedgerText) bool { return s.Message == n })
}

// request begins a request, and ends the one before.
func (l *Ledger) request(n int, text string) {
	t := &l.s.Talk
	if r := l.current(); r != nil {
		if k := len(l.s.Steps); k > 0 && l.s.Steps[k-1].By == abi.RoleTool && r.Stopped == 0 {
			r.Stopped = n
		}
		if len(t.Requests) > 1 && len(r.Text) > maxRequest {
			r.Size = max(r.Size, len(r.Text))
			r.Text = clip(r.Text, maxRequest)
		}
	}
	if len(t.Requests) >= maxRequests {
		first := t.Requests[0]
		t.Requests = append(t.Requests[:0], t.Requests[maxRequests/4:]...)
		t.Requests[0] = first
	}
	t.Requests = append(t.Requests, abi.LedgerRequest{Message: n, Text: clip(text, maxFirst), Size: sizeOf(text, maxFirst), End: endOf(text), Question: l.answered(text)})
	t.Question = nil
}

// fewWords is up to how many bytes a request says little without what it answers.
const fewWords = 20

// answered is what a request answers: the agent's question, or the last sentence before a few words such as "yes".
func (l *Ledger) answered(text string) *abi.LedgerText {
	t, r := &l.s.Talk, l.current()
	if t.Question != nil || t.Last == nil || r == nil || t.Last.Message < r.Message || len(text) > fewWords || t.Last.Size > 0 {
		return t.Question
	}
	if last := lastSentence(t.Last.Text); last != "" {
		return &abi.LedgerText{Message: t.Last.Message, By: t.Last.By, Text: strings.Clone(last)}
	}
	return nil
}

// sentencesOf keeps the sentences of the user that set rules, and those that hold facts.
func (l *Ledger) sentencesOf(n int, text string) {
	speaker := speakerOf(text)
	kept, most, list := 0, 12, l.cues.rule
	if len(text) > longText {
		most, list = 5, l.cues.strong
	}
	sentences(text, func(s string) {
		if kept < most && len(s) <= maxSentence && len(s) >= 8 && startsPlain(s) && !strings.HasSuffix(s, "?") && !strings.HasSuffix(s, ":") && hasCue(strings.ToLower(s), list) {
			l.rule(n, s, "")
			kept++
		}
		l.statement(n, speaker, s)
	})
}

// longRequest is from how many bytes on a request may be quoted in part.
const longRequest = 160

// endOf is the last sentence of a long request.
func endOf(text string) string {
	if len(text) < longRequest {
		return ""
	}
	return strings.Clone(lastSentence(text))
}

// lastSentence is the last one of a text, empty if that is no prose.
func lastSentence(text string) string {
	last := ""
	sentences(text[strings.LastIndexByte(text, '\n')+1:], func(s string) { last = s })
	if len(last) < 8 || len(last) > maxSentence || !strings.Contains(last, " ") || !startsPlain(last) {
		return ""
	}
	return last
}

// longText is from how many bytes on a text of the user may be pasted.
const longText = 900

// startsPlain reports a sentence that begins as prose does, not as code or output: with a letter or a number. Numbers of lines and
// times, which have a mark behind them, and hashes begin what was pasted.
func startsPlain(s string) bool {
	rest := strings.TrimLeft(s, "0123456789")
	if len(rest) == len(s) {
		return letter(s[0]) || s[0] == '"' || s[0] == '`'
	}
	word, next, _ := strings.Cut(rest, " ")
	if strings.ContainsAny(word, ":-|+\t→") || rest != "" && letter(rest[0]) && strings.ContainsAny(word, "0123456789") {
		return false
	}
	next = strings.TrimLeft(next, " ")
	return next != "" && (word != "" || letter(next[0]) || isDigitByte(next[0]))
}

// rule keeps a sentence, and forgets an earlier one with the same words.
func (l *Ledger) rule(n int, s, why string) {
	list := &l.s.Talk.Rules
	*list = slices.DeleteFunc(*list, func(o abi.LedgerText) bool { return o.Text == s })
	*list = appendBounded(*list, abi.LedgerText{Message: n, By: string(abi.RoleUser), Text: strings.Clone(s), Kind: why}, maxRules)
}

// noAnswer is what a program writes in the agent's place behind a request that was stopped.
const noAnswer = "No response requested."

// agentText reads what the agent wrote.
func (l *Ledger) agentText(n int, text string) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed == noAnswer {
		return
	}
	l.names.read(text, n, byAgent, "")
	t := &l.s.Talk
	t.Last = &abi.LedgerText{Message: n, By: string(abi.RoleAssistant), Text: clip(trimmed, maxText), Size: sizeOf(trimmed, maxText)}
	t.Question = nil
	if q := lastQuestion(trimmed); q != "" {
		t.Question = &abi.LedgerText{Message: n, By: string(abi.RoleAssistant), Text: strings.Clone(q)}
	}
	if r := l.current(); r != nil {
		if came, size := l.concluded(trimmed); came != "" {
			r.Outcome = &abi.LedgerText{Message: n, By: string(abi.RoleAssistant), Text: came, Size: size}
		}
	}
	l.findings(n, trimmed)
	l.step(abi.LedgerStep{Message: n, By: abi.RoleAssistant, Text: clip(trimmed, maxStep), Size: sizeOf(trimmed, maxStep)})
}

// lastQuestion is the last sentence of a text, if it is a question.
func lastQuestion(text string) string {
	tail := text[max(0, len(text)-600):]
	if i := strings.IndexByte(tail, '\n'); len(text) > 600 && i >= 0 {
		tail = tail[i+1:]
	}
	if !strings.HasSuffix(strings.TrimRight(tail, "*_` \n"), "?") {
		return ""
	}
	last := ""
	sentences(tail, func(s string) { last = s })
	if strings.Contains(last, "?") && len(last) <= maxSentence {
		return last
	}
	return ""
}

// findings keeps sentences of the agent that hold a cause, a decision or a result.
func (l *Ledger) findings(n int, text string) {
	kept := 0
	sentences(text, func(s string) {
		l.statement(n, string(abi.RoleAssistant), s)
		if kept >= 6 || len(s) < 30 || len(s) > maxSentence || strings.HasSuffix(s, ":") || strings.HasSuffix(s, "?") {
			return
		}
		low := strings.ToLower(s)
		if startsWith(low, l.cues.filler) || !hasCue(low, l.cues.finding) {
			return
		}
		list := &l.s.Talk.Findings
		*list = slices.DeleteFunc(*list, func(o abi.LedgerText) bool { return o.Text == s })
		*list = appendBounded(*list, abi.LedgerText{Message: n, By: string(abi.RoleAssistant), Text: strings.Clone(s)}, maxFindings)
		kept++
	})
}

// speakerOf is the name in front of a line of a dialogue, such as "Anna: …" or "Dr. Bo Li (Chair): …", else the user.
func speakerOf(text string) string {
	name, rest, ok := strings.Cut(cut(text, maxSpeaker), ": ")
	if !ok || rest == "" {
		return string(abi.RoleUser)
	}
	if plain, in, ok := strings.Cut(name, " ("); ok && strings.HasSuffix(in, ")") {
		name = plain
	}
	if len(name) < 2 || len(name) > 40 || strings.Count(name, " ") > 3 {
		return string(abi.RoleUser)
	}
	for w := range strings.FieldsSeq(name) {
		if w[0] < 'A' || w[0] > 'Z' || strings.ContainsAny(w, ",!?\"'`/=*") || strings.Contains(w, "’") {
			return string(abi.RoleUser)
		}
	}
	return strings.Clone(name)
}
