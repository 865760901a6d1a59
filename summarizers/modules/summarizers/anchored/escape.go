package anchored

import "strings"

// tags are those between which a question puts what others wrote, and which an answer has.
func tags() []string {
	return []string{"memory", "transcript", "message", "ledger", "facts", "focus", "summary"}
}

// escape escapes the angle bracket before the name of one of the tags, in any case and with
// blanks and slashes between.
func escape(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	names := tags()
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if isTag(s, names) {
			b.WriteString("&lt;")
		} else {
			b.WriteByte('<')
		}
	}
}

func isTag(s string, names []string) bool {
	rest := strings.TrimLeft(s[:min(len(s), 64)], "/ \t\r\n")
	for _, n := range names {
		if len(rest) >= len(n) && strings.EqualFold(rest[:len(n)], n) {
			return true
		}
	}
	return false
}
