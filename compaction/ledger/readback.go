package ledger

import (
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// ReadBack restores what it can of a ledger from a rendering of it, for hosts that keep the text
// alone. It reports false for other texts. What the rendering left out is lost; of cut quotations the
// beginning is there.
func ReadBack(text string) (abi.Ledger, bool) {
	text = clean(strings.TrimSpace(text))
	if _, inside, ok := strings.Cut(text, "<conversation-summary>"); ok {
		inside, _, _ = strings.Cut(inside, "</conversation-summary>")
		text = strings.TrimSpace(inside)
	}
	head, rest, _ := strings.Cut(text, "\n")
	r := &reader{}
	r.s.Version = abi.LedgerVersion
	if !strings.HasPrefix(head, headStart) || !r.head(head[len(headStart):]) {
		return abi.Ledger{}, false
	}
	r.requests = map[int]*abi.LedgerRequest{}
	for _, sec := range sections(rest) {
		r.section(sec)
	}
	r.finish(text)
	return r.s, true
}

// reader restores a state.
type reader struct {
	s        abi.Ledger
	requests map[int]*abi.LedgerRequest
	order    []int
	names    []abi.LedgerName
	earlier  []int // requests that were stopped and are not quoted
}

// item is an entry of a section: its first line, with the further lines of a quotation in it, and the
// lines that belong to it.
type item struct {
	text string
	subs []string
}

type section struct {
	title string
	items []item
}

// sections cuts a rendering at its headings and entries. The lines of quotations are indented, so that
// no text in them is taken for either.
func sections(text string) []section {
	var out []section
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		at = next
		n := len(out)
		switch {
		case strings.HasPrefix(line, "## "):
			out = append(out, section{title: line[3:]})
		case n == 0:
		case strings.HasPrefix(line, "- "):
			out[n-1].items = append(out[n-1].items, item{text: line[2:]})
		default:
			if k := len(out[n-1].items); k > 0 {
				out[n-1].items[k-1].more(line)
			}
		}
	}
	return out
}

// more adds a line to an entry.
func (it *item) more(line string) {
	if sub, ok := strings.CutPrefix(line, "  → "); ok {
		it.subs = append(it.subs, sub)
		return
	}
	if line != "" && !strings.HasPrefix(line, margin) {
		return
	}
	line = strings.TrimPrefix(line, margin)
	if k := len(it.subs); k > 0 {
		it.subs[k-1] += "\n" + line
		return
	}
	it.text += "\n" + line
}

// head reads the first line.
func (r *reader) head(s string) bool {
	n := digits(s, 0)
	m, err := strconv.Atoi(s[:n])
	if err != nil || n > 9 {
		return false
	}
	r.s.Messages = m
	s = strings.TrimSuffix(s[n:], headEnd)
	s, r.s.Branch, _ = strings.Cut(s, headBranch)
	if folder, ok := strings.CutPrefix(s, headFolder); ok {
		r.s.Folder = folder
	}
	return true
}

// handle reads "m12 " in front of a text.
func handle(s string) (m int, rest string, ok bool) {
	if !strings.HasPrefix(s, "m") {
		return 0, s, false
	}
	n := digits(s, 1)
	m, err := strconv.Atoi(s[1:n])
	if err != nil || n > 10 {
		return 0, s, false
	}
	return m, strings.TrimLeft(s[n:], " :"), true
}

// unquote reads a quotation at the beginning of a text: the size is as [abi.LedgerText] has it.
func unquote(s string) (text string, size int, ok bool) {
	s, ok = strings.CutPrefix(s, openQuote)
	end := strings.LastIndex(s, closeQuote)
	if !ok || end < 0 {
		return "", 0, false
	}
	text, tail := s[:end], s[end+len(closeQuote):]
	if strings.HasPrefix(tail, cutMark) {
		size = -1
		if _, n, ok := strings.Cut(tail, "("); ok {
			if k, err := strconv.Atoi(n[:digits(n, 0)]); err == nil {
				size = k
			}
		}
	}
	return text, size, true
}

// quoted reads "m12 “…”", or "m12: “…”".
func quoted(s string) (abi.LedgerText, bool) {
	m, rest, ok := handle(s)
	if !ok {
		return abi.LedgerText{}, false
	}
	text, size, ok := unquote(rest)
	return abi.LedgerText{Message: m, Text: text, Size: size}, ok
}

// quotedBy is quoted, with the speaker.
func quotedBy(s string, by abi.Role) *abi.LedgerText {
	q, ok := quoted(s)
	if !ok {
		return nil
	}
	q.By = string(by)
	return &q
}

func (r *reader) section(sec section) {
	for i := range sec.items {
		it := &sec.items[i]
		switch sec.title {
		case secGoal:
			r.goal(it)
		case secOpen:
			r.open(it)
		case secPlan:
			r.s.Talk.Plan = quotedBy(it.text, "")
		case secBefore:
			r.s.Talk.Before = quotedBy(it.text, "summary")
		case secRules:
			r.texts(&r.s.Talk.Rules, it, abi.RoleUser)
		case secFindings:
			r.texts(&r.s.Talk.Findings, it, abi.RoleAssistant)
		case secRequests:
			r.request(it)
		case secSteps:
			r.step(it)
		case secFiles:
			r.file(it.text)
		case secCommits:
			r.commit(it.text)
		case secCommands:
			r.command(it.text)
		case secErrors:
			r.fixed(it)
		case secLookups:
			r.lookup(it)
		case secValues:
			r.values(it)
		case secStatement:
			r.statement(it)
		case secNames:
			r.others(it.text)
		}
	}
}

func (r *reader) texts(list *[]abi.LedgerText, it *item, by abi.Role) {
	if q := quotedBy(it.text, by); q != nil {
		*list = append(*list, *q)
	}
}

// of returns the request of a message.
func (r *reader) of(m int) *abi.LedgerRequest {
	q, ok := r.requests[m]
	if !ok {
		q = &abi.LedgerRequest{Message: m}
		r.requests[m], r.order = q, append(r.order, m)
	}
	return q
}

// say sets the text of a request, unless a longer one is known.
func (r *reader) say(t abi.LedgerText) *abi.LedgerRequest {
	q := r.of(t.Message)
	if len(t.Text) > len(q.Text) {
		q.Text, q.Size = t.Text, t.Size
	}
	return q
}

func (r *reader) goal(it *item) {
	_, text, ok := strings.Cut(it.text, "equest, ")
	t, isQuote := quoted(text)
	if !ok || !isQuote {
		return
	}
	r.became(r.say(t), it.subs)
}

func (r *reader) request(it *item) {
	if t, ok := quoted(it.text); ok {
		r.became(r.say(t), it.subs)
	}
}

// became reads what is below a request.
func (r *reader) became(q *abi.LedgerRequest, subs []string) {
	for _, sub := range subs {
		if rest, ok := strings.CutPrefix(sub, "the agent had asked at "); ok {
			q.Question = quotedBy(rest, abi.RoleAssistant)
			continue
		}
		if rest, ok := strings.CutPrefix(sub, "the agent at "); ok {
			q.Outcome = quotedBy(rest, abi.RoleAssistant)
			continue
		}
		for part := range strings.SplitSeq(sub, "; ") {
			if rest, ok := strings.CutPrefix(part, "changed "); ok {
				q.Files = listed(rest)
			} else if rest, ok := strings.CutPrefix(part, "committed "); ok {
				q.Commits = listed(rest)
			} else if rest, ok := strings.CutPrefix(part, "stopped at "); ok {
				q.Stopped, _, _ = handle(rest)
			}
		}
	}
}

// listed reads "a, b and 3 more". What is not named is a mark.
func listed(s string) []string {
	more := 0
	if i := strings.LastIndex(s, " and "); i >= 0 && strings.HasSuffix(s, " more") {
		more, _ = strconv.Atoi(strings.TrimSuffix(s[i+len(" and "):], " more"))
		s = s[:i]
	}
	out := strings.Split(s, ", ")
	for range min(more, maxPaths) {
		out = append(out, "…")
	}
	return out
}

func (r *reader) open(it *item) {
	s := it.text
	for _, state := range []string{abi.TaskDoing, abi.TaskOpen} {
		if text, ok := strings.CutPrefix(s, "["+state+"] "); ok {
			r.task(text, state)
			return
		}
	}
	switch {
	case strings.HasPrefix(s, "the agent asked at "):
		r.s.Talk.Question = quotedBy(s[len("the agent asked at "):], abi.RoleAssistant)
	case strings.HasPrefix(s, "failed at "):
		r.failed(s[len("failed at "):], it.subs)
	case strings.HasPrefix(s, stoppedEarlier[2:]):
		for one := range strings.FieldsSeq(s[len(stoppedEarlier)-2:]) {
			if m, _, ok := handle(one); ok && len(r.earlier) < maxRequests {
				r.earlier = append(r.earlier, m)
			}
		}
	case strings.HasPrefix(s, "stopped at "):
		by, rest, ok := handle(s[len("stopped at "):])
		if t, isQuote := quoted(strings.TrimPrefix(rest, "request ")); ok && isQuote {
			r.say(t).Stopped = by
		}
	}
}

func (r *reader) task(text, state string) {
	t := abi.LedgerTask{Text: text, Status: state}
	if strings.HasPrefix(text, "#") {
		id, rest, ok := strings.Cut(text[1:], " ")
		if ok {
			t.ID, t.Text = id, rest
		}
	}
	r.s.Talk.Tasks = append(r.s.Talk.Tasks, t)
}

// finish puts the parts together. All names of the text count, those of the lists more.
func (r *reader) finish(text string) {
	r.sortRequests()
	t := newNameTable(nil)
	t.read(text, max(1, r.s.Messages*6/10), byAgent, "")
	for i := range r.names {
		n := &r.names[i]
		at, ok := t.at[n.Text]
		if !ok {
			at = int32(len(t.list))
			t.at[n.Text] = at
			t.list = append(t.list, *n)
		}
		if e := &t.list[at]; e.Last < n.Last || !e.Call {
			*e = *n
		}
	}
	r.s.Names = t.list
	l := From(r.s)
	r.s = l.State()
}

func (r *reader) sortRequests() {
	for _, m := range r.earlier {
		if q, ok := r.requests[m]; ok && q.Stopped == 0 {
			q.Stopped = m
		}
	}
	for _, m := range r.order {
		r.s.Talk.Requests = append(r.s.Talk.Requests, *r.requests[m])
	}
	sortBy(r.s.Talk.Requests, func(q *abi.LedgerRequest) int { return q.Message })
	sortBy(r.s.Work.Files, func(f *abi.LedgerFile) int { return max(f.Changed, f.Read) })
	sortBy(r.s.Work.Commands, func(c *abi.LedgerCommand) int { return c.Message })
	sortBy(r.s.Work.Errors, func(e *abi.LedgerError) int { return e.Message })
	sortBy(r.s.Work.Lookups, func(k *abi.LedgerLookup) int { return k.Message })
}
