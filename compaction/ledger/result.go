package ledger

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// result reads what a tool returned.
func (l *Ledger) result(n int, m *abi.Message, text string) {
	c, ok := l.take(cut(m.ToolCallID, maxKey))
	if !ok {
		l.shown(n, text)
		return
	}
	home := ""
	if len(c.Paths) > 0 {
		home = c.Paths[0]
	}
	l.names.read(text, n, byResult, home)
	marked, _ := m.Metadata[abi.MetadataIsError].(bool)
	if marked && startsWith(text, l.cues.refusal) { // without the mark a page or file may begin like that
		l.refused(n, &c, text)
		return
	}
	k := kind(c.Kind)
	failed := marked || k != kindShell && l.didNothing(text, k)
	switch {
	case k == kindShell:
		l.shell(n, &c, text, marked)
	case failed:
		l.became(&c, "failed: "+quote(clip(firstLine(text), maxLine)))
	default:
		l.done(n, &c, k, text)
	}
}

// didNothing reports the result of a file tool that did nothing.
func (l *Ledger) didNothing(text string, k kind) bool {
	head := strings.TrimLeft(text[:min(len(text), 120)], " \t\r\n")
	if k == kindRead || k == kindSearch || k == kindOther || k == kindLookup {
		return strings.HasPrefix(head, "<tool_use_error>") || strings.HasPrefix(head, "[no result was recorded]") || strings.HasPrefix(head, "File does not exist") || k == kindOther && strings.HasPrefix(head, "Error: ")
	}
	if startsWith(strings.ToLower(head), l.cues.failed) {
		return true
	}
	code, ok := exitCode(text)
	return k == kindPatch && ok && code != 0
}

// take removes the call that a result answers.
func (l *Ledger) take(id string) (abi.LedgerCall, bool) {
	for i := range slices.Backward(l.s.Calls) {
		if l.s.Calls[i].ID == id {
			c := l.s.Calls[i]
			l.s.Calls = slices.Delete(l.s.Calls, i, i+1)
			return c, true
		}
	}
	return abi.LedgerCall{}, false
}

// became notes at a step what its result was.
func (l *Ledger) became(c *abi.LedgerCall, what string) {
	text := stepText(c)
	for i := range slices.Backward(l.s.Steps) {
		if s := &l.s.Steps[i]; s.Message == c.Message && s.By == abi.RoleTool && s.Result == "" && s.Text == text {
			s.Result = what
			return
		}
		if l.s.Steps[i].Message < c.Message {
			return
		}
	}
}

// refused reads why the user did not allow a call.
func (l *Ledger) refused(n int, c *abi.LedgerCall, text string) {
	what := "refused by the user"
	for _, mark := range []string{"the user said:\n", "The user said:\n", "with reason: ", "feedback: "} {
		_, reason, ok := strings.Cut(text, mark)
		if reason = strings.TrimSpace(reason); ok && reason != "" {
			reason, _, _ = strings.Cut(reason, "\n\nNote: ")
			l.rule(n, clip(reason, maxSentence), "refusal")
			what = "refused by the user: " + quote(clip(firstLine(reason), maxLine))
			break
		}
	}
	l.became(c, what)
	if r := l.current(); r != nil {
		r.Stopped = n
	}
}

// done applies a call that succeeded.
func (l *Ledger) done(n int, c *abi.LedgerCall, k kind, text string) {
	switch k {
	case kindRead:
		for _, p := range c.Paths {
			f := l.file(p)
			f.Read = c.Message
			f.Reads++
		}
	case kindEdit, kindWrite:
		for _, p := range c.Paths {
			created := k == kindWrite && strings.Contains(strings.ToLower(text[:min(len(text), 200)]), "creat")
			l.changed(c, p, "", created)
		}
	case kindPatch:
		for _, f := range patchFiles(c.Text) {
			if f.gone {
				l.gone(c, f.path, "patch", abi.FileDeleted)
				continue
			}
			l.changed(c, f.path, "", f.verb == "created")
		}
	case kindNewTask:
		l.s.Talk.Tasks = appendBounded(l.s.Talk.Tasks, abi.LedgerTask{ID: taskNumber(text), Message: c.Message, Text: c.Text, Status: abi.TaskOpen}, maxTasks)
	case kindTask:
		l.task(c)
	case kindLookup:
		l.lookup(n, c, text)
	case kindOther:
		if s := strings.TrimSpace(text); s != "" && len(s) <= maxAnswer && strings.Trim(s, "+-$€£.,%0123456789") == "" && strings.ContainsAny(s, "0123456789") {
			l.became(c, quote(s))
		}
		l.records(n, c, text)
	default:
	}
}

// maxAnswer bounds a number that is shown with the call that returned it, in bytes.
const maxAnswer = 40

// taskNumber finds the number of a new task in the result.
func taskNumber(text string) string {
	_, rest, _ := strings.Cut(text[:min(len(text), 300)], "#")
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	return strings.Clone(rest[:n])
}

func (l *Ledger) task(c *abi.LedgerCall) {
	id, state, _ := strings.Cut(c.Text, "\n")
	for i := range l.s.Talk.Tasks {
		t := &l.s.Talk.Tasks[i]
		if t.ID != id || id == "" || state == "" {
			continue
		}
		if state == "deleted" {
			l.s.Talk.Tasks = slices.Delete(l.s.Talk.Tasks, i, i+1)
			return
		}
		t.Status, t.Message = state, c.Message
		return
	}
}

func (l *Ledger) lookup(n int, c *abi.LedgerCall, text string) {
	if c.Text == "" {
		return
	}
	list := &l.s.Work.Lookups
	*list = slices.DeleteFunc(*list, func(o abi.LedgerLookup) bool { return o.Tool == c.Tool && o.Query == c.Text })
	*list = appendBounded(*list, abi.LedgerLookup{Message: n, Tool: c.Tool, Query: c.Text, Line: clip(firstLine(text), maxLine)}, maxLookups)
}
