package eval

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// near is how much of a unit is read on each side of a needle, in bytes: a line
// without an end would hold every word.
const near = 200

// minWord is how long a content word is at least, in characters.
const minWord = 4

// stopWords carry nothing of a question or sentence.
func stopWords() []string {
	return strings.Fields("what which where when does have that this with from about give name said says they " +
		"their were much many should would could will your that's need know there than been being into just like " +
		"only over some such them then these those very well also because here make made more most other same although however")
}

// lexicon tells content words. It is immutable.
type lexicon struct{ stop map[string]bool }

func newLexicon() *lexicon {
	l := &lexicon{stop: make(map[string]bool)}
	for _, w := range stopWords() {
		l.stop[w] = true
	}
	return l
}

// content returns the content words of a text, in lower case, each once.
func (l *lexicon) content(text string) []string {
	var out []string
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, w := range fields {
		if utf8.RuneCountInString(w) >= minWord && !l.stop[w] {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isWord reports whether a byte continues a word of ASCII.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// places returns where a needle stands in a text as words of its own, at most
// limit places. Both must be in the same case.
func places(text, needle string, limit int) []int {
	var out []int
	if needle == "" {
		return nil
	}
	for at := 0; len(out) < limit; {
		i := strings.Index(text[at:], needle)
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		end := i + len(needle)
		if i > 0 && isWord(text[i-1]) && isWord(needle[0]) || end < len(text) && isWord(text[end]) && isWord(needle[len(needle)-1]) {
			continue
		}
		out = append(out, i)
	}
	return out
}

// begins reports whether a word of the text begins with w.
func begins(text, w string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], w)
		if i < 0 {
			return false
		}
		i += at
		if i == 0 || !isWord(text[i-1]) {
			return true
		}
		at = i + 1
	}
}

// proseWord is a content word that stands in lower case and by itself: no name,
// no part of an identifier, path or address.
type proseWord struct {
	at   int
	word string
}

// prose finds such words of a text, in their order.
func (l *lexicon) prose(text string) []proseWord {
	var out []proseWord
	eachToken(text, func(at int, w string) {
		other := strings.IndexFunc(w, func(r rune) bool { return !unicode.IsLower(r) })
		if other < 0 && utf8.RuneCountInString(w) >= minWord && !l.stop[w] {
			out = append(out, proseWord{at, w})
		}
	})
	return out
}

// unitAround finds the unit of a text that holds text[from:to], of which at most
// near bytes on each side are read. A unit ends at a line's end, behind a
// semicolon, and at a full stop, question or exclamation mark before white space:
// it is a sentence, an item of a list or a row of a table.
func unitAround(text string, from, to int) (int, int) {
	start, end := max(0, from-near), min(len(text), to+near)
	for i := from; i > start; i-- {
		if ends(text, i-1) {
			start = i
			break
		}
	}
	for i := to; i < end; i++ {
		if ends(text, i) {
			end = i
			break
		}
	}
	return start, end
}

// ends reports whether a unit ends with the byte at i.
func ends(text string, i int) bool {
	switch text[i] {
	case '\n':
		return true
	case '.', '?', '!', ';':
		return i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n')
	}
	return false
}

// document is a text in two cases, with everything at the same place in both.
type document struct {
	text, fold string
	// prose is found when it is asked for first.
	prose []proseWord
	read  bool
}

func newDocument(text string) *document { return &document{text: text, fold: fold(text)} }

// between are the prose words that lie within text[from:to].
func (d *document) between(from, to int, l *lexicon) []proseWord {
	if !d.read {
		d.prose, d.read = l.prose(d.text), true
	}
	first, _ := slices.BinarySearchFunc(d.prose, from, func(w proseWord, at int) int { return w.at - at })
	last := first
	for last < len(d.prose) && d.prose[last].at+len(d.prose[last].word) <= to {
		last++
	}
	return d.prose[first:last]
}

// fold is lower case that leaves every character as long as it is, and bytes that
// are none as they are.
func fold(s string) string {
	out := []byte(s)
	for i, r := range s {
		if l := unicode.ToLower(r); l != r && utf8.RuneLen(l) == utf8.RuneLen(r) {
			utf8.EncodeRune(out[i:], l)
		}
	}
	return string(out)
}
