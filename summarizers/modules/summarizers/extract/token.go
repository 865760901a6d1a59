package extract

// class is the kind of a concept.
type class uint8

const (
	classNone class = iota
	classWord
	classNumberWord
	className
	classNumber
	classIdent
)

// token is one word of a unit, its bounds in the text.
type token struct {
	from, to int
	class    class
}

const (
	chLetter = 1 << iota
	chUpper
	chDigit
	chInner // joins two word characters, as in a.b, a/b, 1,000
	chLead  // may start a word, as in $5, @name, /path
)

func kindOf(c byte) uint8 {
	switch {
	case c >= 'a' && c <= 'z', c >= 0x80:
		return chLetter
	case c >= 'A' && c <= 'Z':
		return chLetter | chUpper
	case c >= '0' && c <= '9':
		return chDigit
	case c == '_':
		return chLetter
	case c == '$' || c == '#' || c == '@' || c == '/' || c == '~':
		return chInner | chLead
	case c == '-' || c == '.' || c == ':' || c == '\'' || c == '+' || c == '%' || c == ',' || c == '&' || c == '=' || c == '?':
		return chInner
	}
	return 0
}

// punct3 reports a three byte punctuation mark (dash, quote, ellipsis) at i.
func punct3(s string, i int) bool {
	return i+2 < len(s) && s[i] == 0xE2 && s[i+1] == 0x80
}

// next finds the next token of s at or after i. ok is false at the end.
func next(s string, i int) (token, bool) {
	for i < len(s) {
		if punct3(s, i) {
			i += 3
			continue
		}
		k := kindOf(s[i])
		if k&(chLetter|chDigit) != 0 {
			break
		}
		if k&chLead != 0 && i+1 < len(s) && kindOf(s[i+1])&(chLetter|chDigit) != 0 && !punct3(s, i+1) {
			break
		}
		i++
	}
	if i >= len(s) {
		return token{}, false
	}
	return scanToken(s, i), true
}

func scanToken(s string, i int) token {
	t := token{from: i}
	var f shape
	j := i
	for j < len(s) {
		if s[j] == 0xE2 && punct3(s, j) && !(s[j+2] == 0x99 && j+3 < len(s) && kindOf(s[j+3])&chLetter != 0) {
			break
		}
		k := kindOf(s[j])
		if k&(chLetter|chDigit) == 0 && !joins(s, j, k) {
			break
		}
		f.see(s[j], k, j-i)
		j++
	}
	if j < len(s) && s[j] == '%' {
		j++
	}
	t.to = j
	t.class = f.class(s[i:j])
	return t
}

// joins reports whether the punctuation at j is inside a word.
func joins(s string, j int, k uint8) bool {
	if k&(chInner|chLead) == 0 || j+1 >= len(s) {
		return false
	}
	n := kindOf(s[j+1])
	switch s[j] {
	case ',':
		return n&chDigit != 0 && j > 0 && kindOf(s[j-1])&chDigit != 0
	case '=', '&', '?', ':':
		return n&(chLetter|chDigit) != 0 && j > 0 && (s[j-1] != ' ') || s[j] == ':' && s[j+1] == '/'
	case '/':
		return n&(chLetter|chDigit) != 0 || s[j+1] == '/' || s[j+1] == '.'
	}
	return n&(chLetter|chDigit) != 0
}

// shape collects what a token is made of.
type shape struct {
	letters, digits, upper, marks, path int
	firstUpper, innerUpper, at          bool
	lowerSeen                           bool
}

func (f *shape) see(c byte, k uint8, at int) {
	switch {
	case k&chDigit != 0:
		f.digits++
	case k&chUpper != 0:
		f.letters++
		f.upper++
		if at == 0 {
			f.firstUpper = true
		} else if f.lowerSeen {
			f.innerUpper = true
		}
	case c == '_':
		f.path++
	case k&chLetter != 0:
		f.letters++
		f.lowerSeen = true
	case c == '/' || c == '.' || c == '@' || c == ':' || c == '=' || c == '#':
		f.path++
	case c == '-':
		f.marks++
	}
}

func (f *shape) class(s string) class {
	n := len(s)
	switch {
	case f.digits > 0 && f.letters == 0 && f.path <= 3:
		return classNumber
	case f.digits > 0 && n < 4:
		return classNumber
	case f.digits > 0:
		return classIdent
	case f.path > 0 && n >= 4 && f.letters > 2:
		return classIdent
	case f.innerUpper && n >= 4:
		return classIdent
	case f.upper >= 2 && f.upper >= f.letters-1 && n >= 2:
		return className
	case f.firstUpper && n >= 2:
		return className
	}
	w := lower(s)
	if isNumberWord(w) {
		return classNumberWord
	}
	if n < 3 || isStop(w) {
		return classNone
	}
	return classWord
}
