package ledger

import "strings"

// Classes of bytes. A token is a run of word and joining bytes.
const (
	isWord   = 1 << iota // letters, digits, underscore
	isJoin               // between words, and in front of a path
	isMark               // a byte that makes a token worth keeping: / _ . :
	isDigit              //
	isUpper              //
	isHyphen             //
	inURL                // also part of an address
	isLead               // may start a token although it is no word byte
)

const (
	minToken = 5
	maxToken = 160
)

// classes has a byte of class bits for each byte.
type classes [256]uint8

func newClasses() *classes {
	var c classes
	for b := 'a'; b <= 'z'; b++ {
		c[b] = isWord | inURL
		c[b-'a'+'A'] = isWord | inURL | isUpper
	}
	for b := '0'; b <= '9'; b++ {
		c[b] = isWord | inURL | isDigit
	}
	c['_'] = isWord | inURL | isMark
	for _, b := range []byte("/.:-@~+$#") {
		c[b] = isJoin | inURL
	}
	for _, b := range []byte("/.:") {
		c[b] |= isMark
	}
	c['-'] |= isHyphen
	for _, b := range []byte("/.~@") {
		c[b] |= isLead
	}
	for _, b := range []byte("?=&%!*,;") {
		c[b] |= inURL
	}
	// Letters beyond ASCII. Dashes, quotes and arrows begin with 0xc2, 0xe2 or 0xef.
	for b := 0x80; b < 0x100; b++ {
		if b != 0xc2 && b != 0xe2 && b != 0xef {
			c[b] = isWord
		}
	}
	return &c
}

// scanner cuts a text into tokens.
type scanner struct {
	c  *classes
	s  string
	at int
}

// next returns the next token, false at the end.
func (t *scanner) next() (string, bool) {
	s, c := t.s, t.c
	for t.at < len(s) {
		b := s[t.at]
		if c[b]&(isWord|isLead) == 0 || b == '/' && t.at > 0 && (s[t.at-1] == '<' || s[t.at-1] == '*') { // also the end of a tag, a pattern
			t.at += width(b)
			continue
		}
		if text := t.run(); len(text) >= minToken && len(text) <= maxToken && t.isName(text) {
			return text, true
		}
	}
	return "", false
}

// run reads a run of word and joining bytes, and returns it trimmed if it may be a token.
func (t *scanner) run() string {
	s, c, i := t.s, t.c, t.at
	start := i
	if i > 0 && s[i-1] == '\\' && escaped(s, i) {
		start++
	}
	var bits uint8
	for i++; i < len(s); i++ {
		k := c[s[i]]
		if k&(isWord|isJoin) == 0 {
			break
		}
		bits |= k
	}
	t.at = i
	if i-start < minToken || bits&(isMark|isDigit|isUpper|isHyphen) == 0 && c[s[start]]&isMark == 0 {
		return ""
	}
	if bits&isMark != 0 && schemeEnd(s[start:i]) > 0 {
		for i < len(s) && c[s[i]]&inURL != 0 {
			i++
		}
		t.at = i
	}
	return t.trim(s[start:i])
}

// isName reports a token that is more than a word: one with a mark, a digit, a hyphen or a capital
// inside.
func (t *scanner) isName(s string) bool {
	c := t.c
	if c[s[0]]&(isMark|isDigit) != 0 {
		return true
	}
	for i := 1; i < len(s); i++ {
		if c[s[i]]&(isMark|isDigit|isHyphen|isUpper) != 0 {
			return true
		}
	}
	return false
}

// width skips punctuation beyond ASCII whole.
func width(b byte) int {
	switch b {
	case 0xe2, 0xef:
		return 3
	case 0xc2:
		return 2
	}
	return 1
}

// escaped reports the letter of an escape such as \n, which is no part of a name, behind a backslash.
func escaped(s string, i int) bool {
	if strings.IndexByte("nrtbswd", s[i]) < 0 {
		return false
	}
	if i == 1 {
		return true
	}
	p := s[i-2]
	return p != ':' && (p < 'A' || p > 'z' || p == '\\' || p > 'Z' && p < 'a')
}

// schemeEnd is where the scheme of an address ends, 0 for none.
func schemeEnd(s string) int {
	i := strings.Index(s, "://")
	if i < 2 || i > 12 {
		return 0
	}
	return i + 3
}

// trim removes punctuation around a run, and the line number behind a path.
func (t *scanner) trim(s string) string {
	c := t.c
	for s != "" && c[s[0]]&isWord == 0 {
		if c[s[0]]&isLead != 0 && len(s) > 1 && (c[s[1]]&isWord != 0 || s[1] == '/' || s[0] == '.' && s[1] == '.') && s[0] != '@' {
			break
		}
		s = s[1:]
	}
	for s != "" && c[s[len(s)-1]]&isWord == 0 {
		s = s[:len(s)-1]
	}
	if i := strings.IndexByte(s, ':'); i > 0 {
		if schemeEnd(s) > 0 {
			return s
		}
		if i+1 < len(s) && c[s[i+1]]&isDigit != 0 && strings.ContainsAny(s[:i], "./") {
			s = s[:i]
		}
	}
	return withoutLine(s)
}

// withoutLine removes the number of a line that a search puts behind a path: a.go-12.
func withoutLine(s string) string {
	i := len(s)
	for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	if i == len(s) || i < 4 || s[i-1] != '-' {
		return s
	}
	dot := strings.LastIndexByte(s[:i-1], '.')
	if dot < 1 || i-1-dot > 5 || i-1-dot < 2 {
		return s
	}
	for _, b := range []byte(s[dot+1 : i-1]) {
		if b < 'a' || b > 'z' {
			return s
		}
	}
	return s[:i-1]
}
