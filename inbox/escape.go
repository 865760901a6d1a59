package inbox

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds an id or a kind in a heading, in bytes.
const maxName = 128

// escape makes the text of a task harmless in a reminder: it cannot open or close
// a tag, and no line of it looks like the heading of an entry.
func escape(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	// All that some reader takes for a line break becomes one, so that no heading hides
	// behind it.
	s = strings.NewReplacer(
		"\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n",
		"&", "&amp;", "<", "&lt;", ">", "&gt;",
	).Replace(s)
	s = strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && unicode.In(c, unicode.Cc, unicode.Cf) {
			return -1 // control characters, also those that hide or turn text
		}
		return c
	}, s)
	if !strings.Contains(strings.ToLower(s), "task") {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if heading(line) {
			lines[i] = "\\" + line
		}
	}
	return strings.Join(lines, "\n")
}

// heading reports whether a line could be taken for the heading of an entry.
func heading(line string) bool {
	line = strings.TrimLeftFunc(line, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return len(line) >= 4 && strings.EqualFold(line[:4], "task")
}

// clip returns the beginning of text, limit bytes at most and whole characters, and
// how much is missing.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	// Not in the middle of what escape wrote.
	if at := strings.LastIndexByte(text[:end], '&'); at >= 0 && end-at < len("&quot;") && !strings.Contains(text[at:end], ";") {
		end = at
	}
	return fmt.Sprintf("%s\n…[cut: %d of %d bytes are missing here; task_result reads the whole]", text[:end], len(text)-end, len(text))
}

// name keeps an id or a kind on its line and in its quotes, and bounds it.
func name(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxName)], "")
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.In(c, unicode.Cc, unicode.Cf), unicode.IsSpace(c), c == '[', c == ']', c == '(', c == ')':
			return '_'
		default:
			return c
		}
	}, s)
	return strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace(s)
}
