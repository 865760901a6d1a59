package eval

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// Check names something that must hold of every text.
type Check string

// Checks.
const (
	// CheckText: the text is not blank, and valid UTF-8.
	CheckText Check = "text"
	// CheckBudget: it is not longer than the budget.
	CheckBudget Check = "budget"
	// CheckTags: it has no tag that could close the one that a summary stands in.
	CheckTags Check = "tags"
	// CheckRange: it claims to cover the messages of the request, or claims nothing.
	CheckRange Check = "range"
)

// Structure is how the texts of a cell are made.
type Structure struct {
	// Failed counts the texts for which a check does not hold.
	Failed map[Check]int `json:"failed,omitempty"`
	// Sections is the share of texts that have headings and something below them.
	Sections float64 `json:"sections"`
	// Prose is the share of words that stand in runs of five as a participant said
	// them. Lists of identifiers have none.
	Prose float64 `json:"prose"`
	// Artifacts is the share of the modified files that are named, of the
	// conversations that modified any: of so many as Modifying.
	Artifacts float64 `json:"artifacts"`
	Modifying int     `json:"modifying"`
}

// check names what does not hold.
func check(s *abi.Summary, r *abi.SummarizeRequest, budget int) []Check {
	var out []Check
	if strings.TrimSpace(s.Text) == "" || !utf8.ValidString(s.Text) {
		out = append(out, CheckText)
	}
	if len(s.Text) > budget {
		out = append(out, CheckBudget)
	}
	if strings.Contains(strings.ToLower(s.Text), "conversation-summary>") {
		out = append(out, CheckTags)
	}
	first, last := r.Messages[0].ID, r.Messages[len(r.Messages)-1].ID
	if s.FromID != "" && s.FromID != first || s.ToID != "" && s.ToID != last {
		out = append(out, CheckRange)
	}
	return out
}

// sectioned reports whether a text has a heading with something below it.
func sectioned(text string) bool {
	heading := false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			heading = true
		case line != "" && heading:
			return true
		}
	}
	return false
}

// run is how many words in a row count as said.
const run = 5

// runs is what was said, as the hashes of its runs of words.
type runs map[uint64]bool

func runsOf(text string) runs {
	r := make(runs)
	each(spoken(text), func(_ int, hash uint64) { r[hash] = true })
	return r
}

// share is the share of a text's words that stand in runs of r.
func (r runs) share(text string) float64 {
	words := spoken(text)
	if len(words) == 0 {
		return 0
	}
	said := make([]bool, len(words))
	each(words, func(at int, hash uint64) {
		if r[hash] {
			for i := range run {
				said[at+i] = true
			}
		}
	})
	n := 0
	for _, ok := range said {
		if ok {
			n++
		}
	}
	return float64(n) / float64(len(words))
}

// each hands on the runs of words that hold at least three of letters alone, so
// that a list of numbers and identifiers is none.
func each(words []string, f func(at int, hash uint64)) {
	for at := 0; at+run <= len(words); at++ {
		letters := 0
		hash := uint64(14695981039346656037)
		for _, w := range words[at : at+run] {
			if strings.IndexFunc(w, func(r rune) bool { return !unicode.IsLetter(r) }) < 0 {
				letters++
			}
			for _, c := range []byte(w) {
				hash = (hash ^ uint64(c)) * 1099511628211
			}
			hash = (hash ^ ' ') * 1099511628211
		}
		if letters >= 3 {
			f(at, hash)
		}
	}
}

// spoken are the words of a text, as white space parts them, in lower case and without
// punctuation around them.
func spoken(text string) []string {
	var out []string
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// named is the share of files that a text names.
func named(text string, files []string) float64 {
	if len(files) == 0 {
		return 1
	}
	n := 0
	for _, f := range files {
		if strings.Contains(text, f) {
			n++
		}
	}
	return float64(n) / float64(len(files))
}
