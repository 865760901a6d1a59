package talk

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cut returns at most n bytes of s, whole characters.
func Cut(s string, n int) string {
	if n <= 0 {
		return ""
	}
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail returns at most n bytes of the end of s, whole characters.
func tail(s string, n int) string {
	if n <= 0 {
		return ""
	}
	at := max(0, len(s)-n)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

// Shorten returns s in at most n bytes: two thirds of its head and the rest of its tail,
// with a note between them that counts what is missing.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	note := " (… " + strconv.Itoa(len(s)-n) + " bytes left out …) "
	room := n - len(note)
	if room < 24 {
		return Cut(s, n)
	}
	return Cut(s, room*2/3) + note + tail(s, room-room*2/3)
}

// Line is s on one line, in at most n bytes.
func Line(s string, n int) string {
	s = Cut(s, 4*n)
	return Cut(strings.Join(strings.Fields(s), " "), n)
}

// Number writes n with commas.
func Number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
