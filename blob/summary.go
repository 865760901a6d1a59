package blob

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// headLines and tailLines are what is shown of a text with many lines.
const headLines, tailLines = 50, 50

// lines counts lines; the last needs no end.
func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// summary is the head and the tail of a text: 50 lines each at most, and half of
// limit bytes each, whatever the lines are like.
func summary(text string, limit int) string {
	text = strings.TrimSuffix(text, "\n")
	head := cutHead(firstLines(text, headLines), max(limit/2, 1))
	rest := text[len(head):]
	tail := cutTail(lastLines(rest, tailLines), max(limit-limit/2, 1))
	between := rest[:len(rest)-len(tail)]
	if between == "" {
		return head + tail
	}
	elided := fmt.Sprintf("[… %d bytes elided …]", len(between))
	if n := strings.Count(strings.Trim(between, "\n"), "\n") + 1; strings.HasSuffix(between, "\n") && strings.HasPrefix(between, "\n") {
		elided = fmt.Sprintf("[… %d lines elided …]", n)
	}
	return strings.Join([]string{strings.TrimSuffix(head, "\n"), elided, strings.TrimPrefix(tail, "\n")}, "\n")
}

// firstLines returns the first n lines, without the end of the last.
func firstLines(text string, n int) string {
	at := 0
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return text
		}
		at += i + 1
	}
	return text[:at-1]
}

// lastLines returns the last n lines.
func lastLines(text string, n int) string {
	at := len(text)
	for range n {
		i := strings.LastIndexByte(text[:at], '\n')
		if i < 0 {
			return text
		}
		at = i
	}
	return text[at+1:]
}

// cutHead and cutTail return so many bytes of the head or the tail, whole
// characters only.
func cutHead(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

func cutTail(text string, limit int) string {
	at := max(len(text)-limit, 0)
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}
