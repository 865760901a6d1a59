package extract

import "strings"

const (
	clauseFrom = 130 // sentences longer than this are cut at clause borders
	clauseMin  = 45  // and no clause is shorter
	unitMax    = 320 // a unit longer than this is cut at a space
)

// sentences calls f with each sentence of s, spaces collapsed, in order. Lines
// always end a sentence.
func sentences(s string, f func(string)) {
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimSpace(line)
		for line != "" {
			n := sentenceEnd(line)
			if t := strings.TrimSpace(line[:n]); t != "" {
				f(t)
			}
			line = strings.TrimSpace(line[n:])
		}
	}
}

func sentenceEnd(s string) int {
	word := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ', '\t':
			word = i + 1
		case '.', '!', '?':
			if i+1 == len(s) {
				return len(s)
			}
			if s[i+1] == ' ' && !(s[i] == '.' && abbreviation(s[word:i], s[i+1:])) {
				return i + 1
			}
			if (s[i+1] == '"' || s[i+1] == ')') && i+2 < len(s) && s[i+2] == ' ' {
				return i + 2
			}
		}
	}
	return len(s)
}

// abbreviation reports whether the full stop after w ends no sentence.
func abbreviation(w, after string) bool {
	after = strings.TrimLeft(after, " ")
	if after == "" || after[0] >= 'a' && after[0] <= 'z' && len(w) > 0 {
		return true
	}
	switch lower(w) {
	case "mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "no", "fig", "approx", "jr", "sr":
		return true
	}
	// "1." of a list belongs to what follows.
	if len(w) > 0 && len(w) <= 2 {
		for i := range len(w) {
			if w[i] < '0' || w[i] > '9' {
				return false
			}
		}
		return true
	}
	return false
}

// clauses cuts a long sentence where a comma, a dash or a semicolon lets it.
func clauses(s string, f func(string)) {
	for len(s) > clauseFrom {
		n := clauseEnd(s)
		if n <= 0 || n >= len(s) {
			break
		}
		f(strings.TrimRight(s[:n], " ,;"))
		s = strings.TrimLeft(s[n:], " ,;—–")
	}
	for len(s) > unitMax {
		n := strings.LastIndexByte(s[:unitMax], ' ')
		if n < unitMax/2 {
			n = runeCut(s, unitMax)
		}
		f(s[:n])
		s = strings.TrimSpace(s[n:])
	}
	if s != "" {
		f(s)
	}
}

func clauseEnd(s string) int {
	for i := clauseMin; i+clauseMin < len(s); i++ {
		switch s[i] {
		case ';':
			return i + 1
		case ',':
			if s[i+1] == ' ' && isClauseWord(lower(firstWord(s[i+2:]))) {
				return i + 1
			}
		case 0xE2:
			if punct3(s, i) && (s[i+2] == 0x94 || s[i+2] == 0x93) {
				return i + 3
			}
		case ' ':
			if s[i+1] == '-' && s[i+2] == ' ' || s[i+1] == '-' && s[i+2] == '-' {
				return i + 3
			}
		}
	}
	return 0
}

func firstWord(s string) string {
	n := strings.IndexAny(s, " ,.;:!?")
	if n < 0 {
		return s
	}
	return s[:n]
}

// runeCut is the greatest n' <= n that does not cut a character.
func runeCut(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return n
}

// tidy collapses spaces and drops what prose can do without: filler words,
// markup of transcribers in braces, spaces before punctuation.
func tidy(s string, prose bool) string {
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		s = strings.TrimLeft(s, " \t\r\n")
		n := strings.IndexAny(s, " \t\r\n")
		if n < 0 {
			n = len(s)
		}
		w := s[:n]
		s = s[n:]
		if w == "" || prose && (dropped(w) || repeated(out, w)) {
			continue
		}
		glue := prose && len(out) > 0 && (len(w) == 1 && strings.ContainsAny(w, ".,;:!?)") || w[0] == '\'' && len(w) > 1 && len(w) <= 3 || w == "n't")
		if len(out) > 0 && !glue {
			out = append(out, ' ')
		}
		out = append(out, w...)
	}
	return strings.TrimSpace(strings.TrimLeft(string(out), ",; "))
}

func dropped(w string) bool {
	if len(w) > 2 && w[0] == '{' && w[len(w)-1] == '}' {
		return true
	}
	return isFiller(lower(strings.TrimRight(w, ",")))
}

// repeated reports a stammer: the word that was just written.
func repeated(out []byte, w string) bool {
	n := len(out) - len(w)
	return n >= 0 && string(out[n:]) == w && (n == 0 || out[n-1] == ' ') && w != "." && len(w) < 8 && w[0] >= 'A'
}

// unmarked drops what makes a line a heading, a quotation or an item of a list.
func unmarked(s string) string {
	t := strings.TrimLeft(s, "#>*-+ ")
	n := 0
	for n < len(t) && n < 3 && t[n] >= '0' && t[n] <= '9' {
		n++
	}
	if n > 0 && n+1 < len(t) && (t[n] == '.' || t[n] == ')') && t[n+1] == ' ' {
		t = t[n+2:]
	}
	if len(s)-len(t) > 0 && (strings.HasPrefix(s, "#") || strings.ContainsAny(s[:len(s)-len(t)], " *")) {
		return strings.TrimSpace(t)
	}
	return s
}
