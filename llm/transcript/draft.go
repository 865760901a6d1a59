package transcript

import (
	"fmt"
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

// add appends a message. Tool results among the content become tool messages
// before it, because they must follow their calls directly.
func (d *draft) add(e Entry, c content) {
	for _, r := range c.results {
		d.entries = append(d.entries, Entry{
			Message: abi.Message{ID: e.Message.ID, Role: abi.RoleTool, Content: r.blocks, ToolCallID: r.callID},
			Status:  status(r.failed), Line: e.Line, At: e.At,
		})
	}
	if len(c.results) > 0 && len(c.blocks) == 0 && len(c.calls) == 0 {
		return
	}
	e.Message.Content = c.blocks
	switch e.Message.Role {
	case abi.RoleAssistant:
		e.Message.ToolCalls = c.calls
	case abi.RoleTool:
		e.Status = status(e.Status == abi.ToolError)
	default:
		if len(c.calls) > 0 {
			d.note(e.Line, "tool calls in a %s message left out", e.Message.Role)
		}
	}
	d.entries = append(d.entries, e)
}

func status(failed bool) abi.ToolStatus {
	if failed {
		return abi.ToolError
	}
	return abi.ToolSuccess
}
