package ledger

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Weights of words in a text that may be shown.
const (
	plainWeight  = 1
	properWeight = 4
	numberWeight = 6
)

// lexicon numbers words and weighs them.
type lexicon struct {
	c      *classes
	ids    map[string]int // of words as they occur and in lower case; noFact for those that carry none
	runs   []int          // the words of all texts, one behind the other
	form   []string       // as it occurred first
	weight []float64
	label  []string  // the form in a list: numbers with their units
	used   []float64 // how much it counts that the user or the agent wrote it
	kinds  string    // one of the kinds of words for each, in a dialogue
	names  []int     // see byCount
	count  []int
	value  []float64
	seen   []bool
	heads  []int // bytes in front of the first text of each group that is shown
	// together has for each name the words that are shown next to it, a bit for each, where that counts.
	paired   bool
	together [][]uint64
}

const noFact = -1

// Bytes of talk for each word in it that carries a fact, and for each that it holds for the first time, about.
const (
	perFact = 14
	perWord = 50
)

// newLexicon makes room for the words of so many bytes of talk.
func newLexicon(size int) *lexicon {
	n := size / perWord
	return &lexicon{
		c: newClasses(), ids: make(map[string]int, n*2), runs: make([]int, 0, size/perFact),
		form: make([]string, 0, n), label: make([]string, 0, n), weight: make([]float64, 0, n),
	}
}

// words are the numbers of the words of a text that may carry a fact.
func (x *lexicon) words(s string) []int {
	from, start, beyond := len(x.runs), -1, -3
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			beyond = i
		}
		in := x.c[c]&isWord != 0
		if !in && c != ' ' || i-beyond < 3 {
			in = inWord(s, i)
		}
		switch {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			x.word(s, start, i, from)
			start = -1
		}
	}
	if start >= 0 {
		x.word(s, start, len(s), from)
	}
	return x.runs[from:len(x.runs):len(x.runs)]
}

// word adds a word of a text to the runs, in which those of the text begin at a place.
func (x *lexicon) word(s string, start, end, from int) {
	w := plainForm(s[start:end])
	if w == "" || len(w) < leastWord && !isFactWord(w, strings.ToLower(w)) {
		return
	}
	id, known := x.ids[w]
	if !known {
		id = noFact
		if low := strings.ToLower(w); isFactWord(w, low) {
			id = x.id(w, low)
		}
		x.ids[w] = id
	}
	if id == noFact {
		return
	}
	x.proper(id, w, start == 0)
	if isDigitByte(w[0]) && x.label[id] == w {
		x.label[id] = amount(s, start, end)
	}
	if !slices.Contains(x.runs[from:], id) {
		x.runs = append(x.runs, id)
	}
}

// plainForm is a word without the marks around it and without the ending of a possessive.
func plainForm(w string) string {
	for w != "" && !isWordByte(w[0]) {
		n := markAt(w)
		if n == 0 {
			break
		}
		w = w[n:]
	}
	for w != "" && !isWordByte(w[len(w)-1]) {
		n := markAt(w[len(w)-1:])
		if strings.HasSuffix(w, "’") {
			n = len("’")
		}
		if n == 0 {
			break
		}
		w = w[:len(w)-n]
	}
	if !strings.HasSuffix(w, "s") {
		return w
	}
	if s, ok := strings.CutSuffix(w, "'s"); ok {
		return s
	}
	s, _ := strings.CutSuffix(w, "’s")
	return s
}

// markAt is the length of the mark that a text begins with and that is no part of a word at its ends, 0 for other text.
func markAt(s string) int {
	switch s[0] {
	case '\'', '.', ',', ':', '-':
		return 1
	}
	if strings.HasPrefix(s, "’") {
		return len("’")
	}
	return 0
}

// amount is a number with the currency in front of it and the unit or word behind it: the number alone is no fact.
func amount(s string, from, to int) string {
	for _, sign := range []string{"$", "£", "€"} {
		if strings.HasSuffix(s[:from], sign) {
			from -= len(sign)
		}
	}
	if unit := unitOf(s[to:]); unit > 0 {
		return s[from : to+unit]
	}
	return s[nameBefore(s, from):to]
}

// unitOf is the length of the unit or word that a text behind a number begins with, with the blank in front of it, 0 for none.
func unitOf(s string) int {
	if strings.HasPrefix(s, "%") {
		return 1
	}
	if strings.HasPrefix(s, " per cent") {
		return len(" per cent")
	}
	word, blank := strings.CutPrefix(s, " ")
	if next, ok := strings.CutPrefix(word, "€"); ok && (next == "" || !isDigitByte(next[0])) {
		return len(s) - len(next)
	}
	n := 0
	for n < len(word) && inWord(word, n) {
		n++
	}
	unit := plainForm(word[:n])
	if !blank || len(unit) < 2 || len(unit) > maxUnit || !letter(unit[0]) || !strings.HasPrefix(word, unit) || isPlain(strings.ToLower(unit)) {
		return 0
	}
	return 1 + len(unit)
}

// nameBefore is where a name starts that ends in front of a place, such as that of a month, else that place. A plain word that
// opens a sentence is no name.
func nameBefore(s string, at int) int {
	before := strings.TrimSuffix(s[:at], " ")
	i := len(before)
	for i > 0 && letter(before[i-1]) {
		i--
	}
	if len(before) < at && i > 0 && len(before)-i > 2 && before[i] >= 'A' && before[i] <= 'Z' && !isPlain(strings.ToLower(before[i:])) {
		return i
	}
	return at
}

// maxUnit bounds the word behind a number, in bytes.
const maxUnit = 14

// contraction reports a word such as I'll or we’ve.
func contraction(w string) bool {
	for _, end := range []string{"'ll", "'ve", "'re", "'m", "'d", "n't", "’ll", "’ve", "’re", "’m", "’d", "n’t"} {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}

// inWord reports a byte of a word. Marks inside of numbers belong to them, and an apostrophe to its word.
func inWord(s string, i int) bool {
	c := s[i]
	switch {
	case c == markLead:
		return strings.HasPrefix(s[i:], "’")
	case i > 0 && s[i-1] == markLead, i > 1 && s[i-2] == markLead:
		return inWord(s, strings.LastIndexByte(s[:i], markLead))
	case c == signLead, i > 0 && s[i-1] == signLead:
		return false
	}
	if letter(c) || c >= '0' && c <= '9' || c == '\'' || c == '_' {
		return true
	}
	return (c == '.' || c == ',' || c == ':' || c == '-') && i > 0 && i+1 < len(s) && isDigitByte(s[i-1]) && isDigitByte(s[i+1])
}

// markLead is the first byte of dashes, quotation marks and the like, signLead that of £ and others.
const (
	markLead = 0xe2
	signLead = 0xc2
)

func isDigitByte(c byte) bool { return c >= '0' && c <= '9' }

// id is the number of a word, given with its lower case.
func (x *lexicon) id(w, low string) int {
	id, ok := x.ids[low]
	if !ok {
		id = len(x.weight)
		x.ids[low] = id
		weight := float64(plainWeight)
		if strings.ContainsAny(w, "0123456789") || isNumberWord(low) {
			weight = numberWeight
		}
		x.weight, x.used = append(x.weight, weight), append(x.used, 0)
		x.form, x.label = append(x.form, w), append(x.label, w)
	}
	return id
}

// proper raises a word that is written as a name and is not the first of its text.
func (x *lexicon) proper(id int, w string, first bool) {
	if !first && w[0] >= 'A' && w[0] <= 'Z' && x.weight[id] < properWeight && !contraction(w) {
		x.weight[id], x.form[id], x.label[id] = properWeight, w, w
	}
}
