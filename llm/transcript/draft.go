package transcript

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

const (
	maxEntries  = 1 << 20
	maxIDLength = 256
	maxTitle    = 200
)

// draft is a conversation as recorded, before its structure is repaired.
type draft struct {
	id, title string
	entries   []Entry
	cuts      []cut
	partial   bool
	notes     []Note
}

func (d *draft) note(line int, format string, args ...any) {
	d.notes = append(d.notes, Note{Line: line, What: fmt.Sprintf(format, args...)})
}

// setTitle keeps the first line of a title.
func (d *draft) setTitle(s string) {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if s = strings.TrimSpace(s); s != "" {
		d.title = clip(s, maxTitle)
	}
}

// clip shortens to n bytes at a rune boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// add appends a message and the tool results among its content, which become
// tool messages. Those of an answer follow each of its steps; those of another
// message come before it, because they must follow their calls directly.
func (d *draft) add(e Entry, c content) {
	if e.Message.Role == abi.RoleAssistant {
		d.answer(e, &c)
		return
	}
	c = c.flat()
	d.results(e, c.results)
	if len(c.results) > 0 && len(c.blocks) == 0 && len(c.calls) == 0 {
		return
	}
	e.Message.Content = c.blocks
	if e.Message.Role == abi.RoleTool {
		e.Status = status(e.Status == abi.ToolError)
	} else if len(c.calls) > 0 {
		d.note(e.Line, "tool calls in a %s message left out", e.Message.Role)
	}
	d.entries = append(d.entries, e)
}

// answer appends an assistant message for each step. What was recorded about the
// whole answer goes with the last one.
func (d *draft) answer(e Entry, c *content) {
	steps := c.steps()
	for i := range steps {
		s, m := &steps[i], e
		if i < len(steps)-1 {
			m.Usage, m.StopReason = nil, ""
		}
		m.Message.Content, m.Message.ToolCalls = s.blocks, s.calls
		if len(s.results) == 0 || len(s.blocks) > 0 || len(s.calls) > 0 {
			d.entries = append(d.entries, m)
		}
		d.results(e, s.results)
	}
}

// lastAnswer is the index of the last assistant message, -1 when there is none.
func (d *draft) lastAnswer() int {
	for i, e := range slices.Backward(d.entries) {
		if e.Message.Role == abi.RoleAssistant {
			return i
		}
	}
	return -1
}

func (d *draft) results(e Entry, list []result) {
	for _, r := range list {
		d.entries = append(d.entries, Entry{
			Message:  abi.Message{ID: e.Message.ID, Role: abi.RoleTool, Content: r.blocks, ToolCallID: r.callID},
			ToolName: r.name, Status: status(r.failed), Line: e.Line, At: e.At,
		})
	}
}

func status(failed bool) abi.ToolStatus {
	if failed {
		return abi.ToolError
	}
	return abi.ToolSuccess
}
