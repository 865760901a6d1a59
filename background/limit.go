package background

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/dynamic"
)

// fit bounds a plain value. Text goes through Shorten if it is a result, anything else only when it is too large.
func (m *Manager) fit(ctx context.Context, t *Task, v any, isResult bool) any {
	text, result := inbox.Text(v), isResult
	if _, isText := v.(string); !isText {
		result = false
	}
	large := len(text) > m.cfg.MaxPayload
	if !large && !result {
		return v
	}
	if m.cfg.Shorten != nil {
		var short string
		err := guard("Shorten", func() error { short = m.cfg.Shorten(ctx, t.info.Thread, t.info.Type, text); return nil })
		if err != nil {
			m.cfg.Logger.ErrorContext(ctx, "shorten panicked", "task_id", t.info.ID, "task_type", t.info.Type, "error", err)
		} else if len(short) <= m.cfg.MaxPayload {
			return short
		}
	}
	if !large {
		return v
	}
	return cut(text, m.cfg.MaxPayload, "task output")
}

// plain turns v into a value that the ABI can carry, by way of JSON. What JSON refuses becomes a text that names its type.
func (m *Manager) plain(ctx context.Context, t *Task, v any) any {
	if _, isText := v.(string); isText || v == nil {
		return v
	}
	out, err := dynamic.Of(v)
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "a value of a task cannot be written as JSON", "task_id", t.info.ID, "task_type", t.info.Type, "error", err)
		return inbox.Text(v)
	}
	return out
}

// cutError returns the beginning of the text of an error.
func (m *Manager) cutError(text string) string {
	return cut(strings.ToValidUTF8(text, "\uFFFD"), m.cfg.MaxError, "task error")
}

// cut returns the beginning of a text that is longer than limit bytes, in whole characters, and a
// line with the number of bytes that are missing.
func cut(text string, limit int, what string) string {
	if len(text) <= limit {
		return text
	}
	head := strings.ToValidUTF8(text[:limit], "")
	return fmt.Sprintf("%s\n…[%s truncated: dropped %d of %d bytes; narrow the command (head/grep) to keep context lean]",
		head, what, len(text)-len(head), len(text))
}
