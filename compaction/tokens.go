package compaction

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Costs are in hundredths of a token.
const (
	oneToken = 100
	// plainWord is how many letters a word has at most that is one token; each
	// letter beyond it costs longLetter.
	plainWord  = 6
	longLetter = 16
	// capital is what a letter of a word in capitals costs, mixed one of a word
	// that no language has, as in base64.
	capital = 28
	mixed   = 62
	// joined is what a sign before a word adds.
	joined = 18
	// sign is what each further sign of a run costs.
	sign = 20
)

// textTokens estimates the tokens of a text. The text is cut as tokenizers of the
// o200k kind cut it: words with the capitals before them, numbers of three digits,
// runs of signs, white space. What a piece costs depends on its class and its
// length; no vocabulary is needed.
func textTokens(s string) int64 {
	t := tokenCounter{s: s}
	for t.at < len(s) {
		t.piece()
	}
	return (t.n + oneToken - 1) / oneToken
}

// tokenCounter walks through a text.
type tokenCounter struct {
	s  string
	at int
	n  int64
	// before is the class of what came directly before.
	before tokenClass
}

// tokenClass is what a character is to a tokenizer.
type tokenClass int

const (
	blankClass tokenClass = iota
	lineClass
	digitClass
	lowerClass
	upperClass
	wideClass
	signClass
)

func tokenClassOf(c rune, size int) tokenClass {
	switch {
	case c == '\n' || c == '\r':
		return lineClass
	case c == ' ' || c == '\t':
		return blankClass
	case c >= '0' && c <= '9':
		return digitClass
	case c >= 'a' && c <= 'z':
		return lowerClass
	case c >= 'A' && c <= 'Z':
		return upperClass
	case c < utf8.RuneSelf:
		return signClass
	case size == 1:
		return wideClass
	case unicode.Is(unicode.Latin, c):
		if unicode.IsUpper(c) {
			return upperClass
		}
		return lowerClass
	case unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c):
		return wideClass
	case unicode.IsSpace(c):
		return blankClass
	}
	return wideClass
}

func (t *tokenCounter) peek() (tokenClass, int) {
	c, size := utf8.DecodeRuneInString(t.s[t.at:])
	return tokenClassOf(c, size), size
}

func (t *tokenCounter) run(k tokenClass) int {
	n := 0
	for t.at < len(t.s) {
		c, size := t.peek()
		if c != k {
			break
		}
		t.at += size
		n++
	}
	return n
}

// piece counts what begins here.
func (t *tokenCounter) piece() {
	k, _ := t.peek()
	switch k {
	case blankClass:
		t.blank()
	case lineClass:
		t.lines()
	case digitClass:
		t.n += int64((t.run(digitClass)+2)/3) * oneToken
	case lowerClass, upperClass:
		k = t.word()
	case wideClass:
		t.script()
	case signClass:
		t.signs()
	}
	t.before = k
}

// lines counts line breaks; white space between them is the same token, and signs
// before them take them along.
func (t *tokenCounter) lines() {
	for t.run(lineClass) > 0 {
		end := t.at
		t.run(blankClass)
		if k, _ := t.peek(); t.at == len(t.s) || k != lineClass {
			t.at = end
			break
		}
	}
	if t.before != signClass {
		t.n += oneToken
	}
}

func (t *tokenCounter) blank() {
	n := t.run(blankClass)
	if t.at == len(t.s) {
		t.n += oneToken
		return
	}
	k, _ := t.peek()
	switch {
	case k == lineClass: // white space before a line break is part of it
	case k == digitClass: // a number takes no blank
		t.n += oneToken
	case n > 1:
		t.n += oneToken
	}
}

// word counts capitals and the small letters behind them, and returns the class
// that it ends with.
func (t *tokenCounter) word() tokenClass {
	caps := t.run(upperClass)
	small := t.run(lowerClass)
	t.n += t.wordCost(caps, small)
	if small == 0 {
		return upperClass
	}
	return lowerClass
}

func (t *tokenCounter) wordCost(caps, small int) int64 {
	n := caps + small
	long := max(0, int64(small-plainWord)) * longLetter
	switch {
	case caps > 2 && small > 2: // an abbreviation and a word
		return 2*oneToken + max(0, int64(caps-4))*capital + long
	case caps > 1 && small > 0, t.scrambled(caps, n):
		return max(oneToken, int64(n)*mixed)
	case caps > 1:
		return max(oneToken, int64(n)*capital)
	}
	return oneToken + max(0, int64(n-plainWord))*longLetter
}

// scrambled reports letters between digits, and short pieces with capitals inside
// of a word, as in hashes and in base64.
func (t *tokenCounter) scrambled(caps, n int) bool {
	next := blankClass
	if t.at < len(t.s) {
		next, _ = t.peek()
	}
	inside := t.before == lowerClass || t.before == upperClass
	switch {
	case t.before == digitClass:
		return true
	case t.before == blankClass || t.before == lineClass:
		return false
	case inside && n <= 3 && caps > 0 && next != blankClass:
		return true
	}
	return next == digitClass && n <= 4
}

// signs counts a run of signs.
func (t *tokenCounter) signs() {
	start := t.at
	t.run(signClass)
	run := t.s[start:t.at]
	next := blankClass
	if t.at < len(t.s) {
		next, _ = t.peek()
	}
	if len(run) == 1 && (next == lowerClass || next == upperClass) { // the word takes it
		t.n += joined
		return
	}
	for run != "" {
		if same := len(run) - len(strings.TrimLeft(run, run[:1])); same >= 3 {
			t.n += ruleCost(run[0], same)
			run = run[same:]
			continue
		}
		some := len(run)
		if i := longRun(run); i >= 0 {
			some = i
		}
		t.n += oneToken + int64(some-1)*sign
		run = run[some:]
	}
}

// ruleCost is what a run of equal signs costs, as of a line that separates.
func ruleCost(c byte, n int) int64 {
	switch {
	case c == '\\' || c == '|':
		return int64(n) * 26
	case n < 6:
		return oneToken
	case n < 34:
		return 2 * oneToken
	case n < 128:
		return 225
	}
	return 225 + int64(n-128)*2
}

// longRun is where three equal signs begin, -1 for nowhere.
func longRun(s string) int {
	for i := 1; i+2 < len(s); i++ {
		if s[i:i+2] == s[i+1:i+3] {
			return i
		}
	}
	return -1
}

// script counts a run of another script.
func (t *tokenCounter) script() {
	for t.at < len(t.s) {
		c, size := utf8.DecodeRuneInString(t.s[t.at:])
		if tokenClassOf(c, size) != wideClass {
			return
		}
		t.at += size
		t.n += runeCost(c)
	}
}

// runeCost is what a character of another script costs, in hundredths.
func runeCost(c rune) int64 {
	switch {
	case unicode.Is(unicode.Han, c):
		return 80
	case unicode.In(c, unicode.Hiragana, unicode.Katakana):
		return 74
	case unicode.Is(unicode.Hangul, c):
		return 72
	case strings.ContainsRune("іїєґІЇЄҐўђћљњџј", c): // Cyrillic of languages with fewer texts
		return 90
	case unicode.Is(unicode.Cyrillic, c):
		return 29
	case unicode.In(c, unicode.Arabic, unicode.Devanagari):
		return 34
	case unicode.Is(unicode.Greek, c):
		return 37
	case unicode.IsLetter(c) || unicode.IsMark(c):
		return 60
	case c == '\u200d' || c == '\ufe0f': // they join and color emoji
		return 50
	case c > '\U0001f000': // emoji
		return 195
	case c == utf8.RuneError:
		return 80
	}
	return 90
}
