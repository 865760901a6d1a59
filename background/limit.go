package background

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// rate lets so many events a second pass, and a burst of as many at once. The gate
// of the task's events guards it.
type rate struct {
	perSecond int
	// free events may pass before the clock is looked at; it was at filled last.
	free   int
	filled time.Time
}

// wait returns when the event may pass, or false when ctx is done before.
func (r *rate) wait(ctx context.Context) bool {
	delay := r.take()
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// take takes the place of one event and says how long it has to wait for it.
func (r *rate) take() time.Duration {
	if r.free > 0 {
		r.free--
		return 0
	}
	step, now := time.Second/time.Duration(r.perSecond), time.Now()
	if earliest := now.Add(-time.Second); r.filled.Before(earliest) {
		r.filled = earliest
	}
	if n := int(now.Sub(r.filled) / step); n > 0 {
		r.free = n - 1
		r.filled = r.filled.Add(time.Duration(n) * step)
		return 0
	}
	r.filled = r.filled.Add(step)
	return r.filled.Sub(now)
}

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

// shorten calls Shorten, which may be somebody else's code.
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

// cutError keeps the head of an error's text.
func (m *Manager) cutError(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= m.cfg.MaxError {
		return text
	}
	return cut(text, m.cfg.MaxError, "task error truncated")
}

// cut returns the head of text, at most limit bytes and whole characters, and a
// line that says how much is missing.
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
