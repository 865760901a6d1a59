package ticket

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds on a number such as OPS-123.
const (
	minLetters, maxLetters = 2, 10
	maxDigits              = 7
)

// Find returns the first ticket numbers in text, each once, at most limit.
func Find(text string, limit int) []string {
	var out []string
	for i := 0; i < len(text) && len(out) < limit; {
		if i > 0 && word(text[i-1]) {
			i++
			continue
		}
		n := number(text[i:])
		if n == 0 {
			i++
			continue
		}
		if id := text[i : i+n]; !slices.Contains(out, id) {
			out = append(out, id)
		}
		i += n
	}
	return out
}

// number returns the length of the ticket number that text begins with, 0 without one.
func number(text string) int {
	i := 0
	for i < len(text) && 'A' <= text[i] && text[i] <= 'Z' {
		i++
	}
	if i < minLetters || i > maxLetters || i == len(text) || text[i] != '-' {
		return 0
	}
	end := i + 1
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	digits := end - i - 1
	if digits == 0 || digits > maxDigits || (end < len(text) && word(text[end])) {
		return 0
	}
	return end
}

// word reports whether a byte continues a word, so that no number is found inside of one.
func word(c byte) bool {
	return c == '_' || c == '-' || c >= utf8.RuneSelf || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// Clean makes a server's answer text of at most limit bytes, without anything that
// could end the block that it is put into.
func Clean(body []byte, limit int) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), limit)]), "")
	text = strings.Map(func(c rune) rune {
		switch {
		case c == '<':
			return '‹'
		case c == '>':
			return '›'
		case c == '\n' || c == '\t' || c >= ' ' && c != 0x7f:
			return c
		}
		return -1
	}, text)
	return strings.TrimSpace(text)
}
