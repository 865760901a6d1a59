package mask

import (
	"errors"
	"strconv"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// Policy is the name under which a module offers this package.
const Policy = "mask"

// Errors of [Summarize].
var (
	ErrNoBudget  = errors.New("mask: budget_tokens: too small for a summary")
	ErrNoContent = errors.New("mask: messages: nothing to summarize")
)

// minLimit is the least that a summary needs, and headLimit the least at which it describes what
// is masked, in bytes.
const (
	minLimit  = 60
	headLimit = 400
)

// hint explains how to read what is masked, when the config does not.
const hint = "call the tool again with the same arguments"

// notableSizes are how much of a masked output may stand in its line, in bytes: the most for
// which everything fits, and else the least.
func notableSizes() []int { return []int{800, 240} }

// collect makes the entries. leftOut is what earlier summaries have left out.
func collect(req *mortise.SummarizeRequest, limit int) (b *board, leftOut int) {
	for _, n := range notableSizes() {
		b = &board{notable: n}
		if req.PreviousSummary != nil {
			leftOut = b.earlier(*req.PreviousSummary)
		}
		b.messages(req.Messages)
		if b.cost() <= limit*2/3 {
			break
		}
	}
	return b, leftOut
}

// Summarize writes the summary. It is never longer than the budget.
func Summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	limit := talk.Limit(req)
	if limit < minLimit {
		return nil, ErrNoBudget
	}
	b, leftOut := collect(req, limit)
	if len(b.list) == 0 {
		return nil, ErrNoContent
	}
	head := heading(req, b, limit)
	b.fit(limit - len(head) - len(leftOutPrefix) - len("99999 entries)"))
	text := head + b.text(leftOut)
	s := &mortise.Summary{Text: talk.Cut(text, limit), Policy: Policy}
	s.FromID, s.ToID = talk.Span(req.Messages)
	return s, nil
}

// heading describes what is masked, and what the host knows, in at most a third of the limit.
func heading(req *mortise.SummarizeRequest, b *board, limit int) string {
	var out []byte
	if b.masked > 0 && limit >= headLimit {
		out = append(out, maskedPrefix+"the output of "+plural(b.masked, "tool call")+", "+plural(b.bytes, "byte")+
			". To read one, "+talk.Line(mortise.StringOr(req.Config, "hint", hint), 200)+". [tool ID] names its message.\n"...)
	}
	room := limit/3 - len(out)
	for _, l := range []struct {
		name string
		list []string
	}{{"Files modified: ", req.ModifiedFiles}, {"Running tasks: ", req.LiveTasks}, {"Files read: ", req.ReadFiles}} {
		if line := list(l.list, room-len(l.name)-1); line != "" {
			out = append(append(append(out, l.name...), line...), '\n')
			room -= len(l.name) + len(line) + 1
		}
	}
	return string(out)
}

// plural writes "1 call" or "2 calls".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return talk.Number(n) + " " + what + "s"
}

// list joins as many names as fit, and counts the others.
func list(names []string, room int) string {
	const more = " and 99999 more"
	out := ""
	for i, n := range names {
		n = talk.Line(n, 300)
		if len(out)+len(n)+2+len(more) > room {
			if out == "" {
				return ""
			}
			return out + " and " + strconv.Itoa(len(names)-i) + " more"
		}
		if i > 0 {
			out += ", "
		}
		out += n
	}
	return out
}

// messages adds the range.
func (b *board) messages(list []mortise.Message) {
	calls := map[string]*mortise.ToolCall{}
	for i := range list {
		m := &list[i]
		for n := range m.ToolCalls {
			calls[m.ToolCalls[n].ID] = &m.ToolCalls[n]
		}
		if talk.Hidden(m) {
			continue
		}
		text := strings.TrimSpace(m.Text())
		switch {
		case talk.Output(m):
			b.output(m, calls[m.ToolCallID], text)
			delete(calls, m.ToolCallID)
		case text != "" && m.Role == mortise.RoleUser:
			b.add(byUser, text)
		case text != "":
			b.add(byAssistant, text)
		}
	}
	for i := range list { // calls without an answer, in their order
		for n := range list[i].ToolCalls {
			if c := &list[i].ToolCalls[n]; calls[c.ID] == c {
				b.add(byTool, talk.Call(c)+" -> no output yet")
			}
		}
	}
}

// output adds a tool's output, masked.
func (b *board) output(m *mortise.Message, call *mortise.ToolCall, text string) {
	does := "output"
	if call != nil {
		does = talk.Call(call)
	}
	if !short(text, b.notable) {
		b.masked++
		b.bytes += len(text)
	}
	b.list = append(b.list, entry{by: byTool, id: talk.Line(m.ID, 80), text: does + " -> " + Masked(text, b.notable)})
}

// Masked is what replaces an output: its size, and in at most n bytes the lines that tell
// most. A short output stays as it is, on one line.
func Masked(text string, n int) string {
	if text == "" {
		return "(no output)"
	}
	if short(text, n) {
		return talk.Line(text, n)
	}
	return talk.Number(len(text)) + " bytes, " + talk.Number(talk.Lines(text)) + " lines: " + talk.Notable(text, n)
}

// short reports whether an output need not be masked.
func short(text string, n int) bool { return len(text) <= n && talk.Lines(text) <= 3 }
