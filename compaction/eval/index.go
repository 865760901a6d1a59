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
		eachToken(t, func(_ int, w string) {
			if !telling(w) {
				return
			}
			e, ok := known[w]
			if !ok {
				e = &entry{text: w, first: len(list)}
				known[w] = e
				list = append(list, e)
			}
			e.count++
		})
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

// inToken reports whether a character may be part of an identifier, path, URL or
// number.
func inToken(r rune) bool {
	switch r {
	case '_', '-', '.', '/', ':', '@', '#', '$', '%', '+':
		return true
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// eachToken hands on the runs of such characters, without punctuation around
// them, and where they stand.
func eachToken(text string, f func(at int, w string)) {
	start := -1
	emit := func(end int) {
		w := strings.TrimLeft(text[start:end], "-.:@#+/")
		at := end - len(w)
		if w = strings.TrimRight(w, "-.:@#+/"); w != "" {
			f(at, w)
		}
		start = -1
	}
	for i, r := range text {
		switch in := inToken(r); {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			emit(i)
		}
	}
	if start >= 0 {
		emit(len(text))
	}
}

// telling reports whether a token is an identifier, a number, a path or a name, and not an
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
