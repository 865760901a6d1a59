package eval

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// index lists identifiers, numbers and names by how often they occur.
func index(texts []string, budget int) string {
	type entry struct {
		text         string
		count, first int
	}
	known := make(map[string]*entry)
	var list []*entry
	for _, t := range texts {
		for _, w := range tokens(t) {
			if !telling(w) {
				continue
			}
			e, ok := known[w]
			if !ok {
				e = &entry{text: w, first: len(list)}
				known[w] = e
				list = append(list, e)
			}
			e.count++
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Or(b.count-a.count, a.first-b.first) })
	var b strings.Builder
	for _, e := range list {
		if b.Len()+len(e.text)+1 <= budget {
			b.WriteString(e.text + " ")
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// tokens are the runs of characters that identifiers, paths, URLs and numbers
// are made of.
func tokens(text string) []string {
	out := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:@#$%+", r)
	})
	for i, w := range out {
		out[i] = strings.Trim(w, "-.:@#+/")
	}
	return out
}

// telling says whether a token is an identifier, a number, a path or a name, and not an
// everyday word.
func telling(w string) bool {
	if len(w) < 2 || len(w) > 120 {
		return false
	}
	for i, r := range w {
		if unicode.IsDigit(r) || unicode.IsUpper(r) && (i > 0 || utf8.RuneCountInString(w) > 2) || strings.ContainsRune("_/@#$", r) {
			return true
		}
		if (r == '.' || r == ':') && i > 0 && i < len(w)-1 {
			return true
		}
	}
	return false
}
