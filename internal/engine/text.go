package engine

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Longest texts of a guest in an error, in bytes.
const (
	MaxMessage = 2048
	MaxDetail  = 1024
	MaxName    = 128
)

// Clean makes text of a guest fit for an error or a log: at most limit bytes,
// characters that do not print escaped, invalid bytes shown in hexadecimal.
func Clean(s string, limit int) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+n]
		switch {
		case r == utf8.RuneError && n == 1:
			piece = fmt.Sprintf(`\x%02x`, s[i])
		case !strconv.IsPrint(r):
			quoted := strconv.QuoteRuneToASCII(r)
			piece = quoted[1 : len(quoted)-1]
		}
		if b.Len()+len(piece) > limit {
			fmt.Fprintf(&b, "... (%d bytes)", len(s))
			break
		}
		b.WriteString(piece)
		i += n
	}
	return b.String()
}
