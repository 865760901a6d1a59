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
	if len(t.Text) > len(q.Text) || len(t.Text) == len(q.Text) && t.Size != 0 {
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
		if rest, ok := strings.CutPrefix(sub, atItsEnd); ok {
			q.End, _, _ = unquote(rest)
			continue
		}
		if rest, ok := cutFirst(sub, hadAsked, hadSaid); ok {
			q.Question = quotedBy(rest, abi.RoleAssistant)
			continue
		}
		if rest, ok := strings.CutPrefix(sub, theAgent); ok {
			q.Outcome = quotedBy(rest, abi.RoleAssistant)
			continue
		}
		if strings.HasPrefix(sub, theUser) { // a request of its own
			continue
		}
		if more, size, ok := unquote(sub); ok && q.Outcome != nil {
			q.Outcome.Text, q.Outcome.Size = q.Outcome.Text+"\n"+more, size
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

// cutFirst cuts off the prefix that a text has.
func cutFirst(s string, prefixes ...string) (rest string, ok bool) {
	for _, p := range prefixes {
		if rest, ok = strings.CutPrefix(s, p); ok {
			return rest, true
		}
	}
	return s, false
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
		if q := r.of(m); q.Stopped == 0 {
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
