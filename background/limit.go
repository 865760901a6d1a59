package background

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// fit makes v a value of the ABI that is no larger than the limit. Text goes
// through Shorten if it is a result, anything else only when it is too large.
func (m *Manager) fit(ctx context.Context, t *Task, v any, isResult bool) any {
	if v == nil {
		return nil
	}
	v = plain(v)
	text, isText := v.(string)
	large := size(v) > m.cfg.MaxPayload
	if !large && (!isText || !isResult) {
		return v
	}
	if !isText {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprintf("[a payload that cannot be written as JSON: %T]", v)
		}
		text = string(data)
	}
	if short, ok := m.shorten(ctx, t, text); ok && len(short) <= m.cfg.MaxPayload {
		return short
	}
	if !large {
		return v
	}
	return cut(text, m.cfg.MaxPayload, "task output truncated")
}

// shorten calls Shorten, which may panic.
func (m *Manager) shorten(ctx context.Context, t *Task, text string) (short string, ok bool) {
	if m.cfg.Shorten == nil {
		return "", false
	}
	defer func() {
		if p := recover(); p != nil {
			m.cfg.Logger.ErrorContext(ctx, "shorten panicked", "task_id", t.info.ID, "task_type", t.spec.Type)
			ok = false
		}
	}()
	return m.cfg.Shorten(ctx, t.spec.Thread, t.spec.Type, text), true
}

// cutError returns the beginning of the text of an error.
func (m *Manager) cutError(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= m.cfg.MaxError {
		return text
	}
	return cut(text, m.cfg.MaxError, "task error truncated")
}

// cut returns the beginning of text, at most limit bytes and whole characters, and a
// line with the number of bytes that are missing.
func cut(text string, limit int, what string) string {
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n…[%s: dropped %d of %d bytes; narrow the command (head/grep) to keep context lean]",
		text[:end], what, len(text)-end, len(text))
}

// size is about how many bytes v takes, for values that plain returned.
func size(v any) int {
	switch x := v.(type) {
	case string:
		return len(x)
	case []byte:
		return len(x)
	case map[string]any:
		n := 16
		for k, e := range x {
			n += len(k) + size(e)
		}
		return n
	case []any:
		n := 16
		for _, e := range x {
			n += size(e)
		}
		return n
	default:
		return 8
	}
}
