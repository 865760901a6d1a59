package term

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// OneLine keeps foreign text on its line, so that it cannot pose as another part of a question.
func OneLine(s string) string { return escaped(Clip(s, 1000), "") }

// Visible shows control characters, and those that hide or reorder text, as escapes. Line breaks and tabs stay, and so do the
// joiners that scripts and emoji need.
func Visible(s string) string { return escaped(s, "\n\t\u200c\u200d") }

// Exact shows all of them, so that what is approved is what was read.
func Exact(s string) string { return escaped(s, "\n") }

func escaped(s, keep string) string {
	var b strings.Builder
	for _, r := range s { // invalid UTF-8 becomes U+FFFD
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) && !strings.ContainsRune(keep, r) {
			quoted := strconv.QuoteRuneToASCII(r)
			quoted = quoted[1 : len(quoted)-1]
			if r == '\x7f' {
				quoted = `\u007f` // as JSON has it
			}
			b.WriteString(quoted)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Plain makes text of a file fit for a terminal: one line, bounded, and without
// control characters.
func Plain(s string, limit int) string {
	return Clip(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return ' '
		}
		return c
	}, s), limit)
}

// Clip is at most n characters of s.
func Clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(0, n-1)]) + "…"
}

// Thousands writes 146213 as 146.2k, and millions likewise.
func Thousands(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n >= 1_000_000_000:
		return fmt.Sprintf("%.1fG", float64(n)/1e9)
	case n >= 10_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}

// Dash is s, or a dash for nothing.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Counted is a number with its noun, in the plural where that is due.
func Counted(n int, noun string, plural ...string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case len(plural) > 0:
		return fmt.Sprintf("%d %s", n, plural[0])
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// After is s behind a separator, or nothing.
func After(separator, s string) string {
	if s == "" {
		return ""
	}
	return separator + s
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Whole is text of others in one line, without control characters and not shortened.
func Whole(s string) string { return Plain(s, math.MaxInt) }
