package extract

import "strings"

const (
	noteMax  = 40 // bytes of a note, about
	noteWord = 3
)

// notes cuts a sentence into notes: what is left of its clauses without the words
// that carry no fact. "the pitcher, which arrived with a small scratch" becomes
// "pitcher", "arrived with scratch".
func notes(s string, f func(string)) {
	s = strings.NewReplacer("\u2019", "'", "\u2014", " - ", "\u2013", "-").Replace(s)
	out := make([]byte, 0, noteMax+16)
	held := "" // a small word that stands only between two that are kept
	facts := 0 // words that carry one
	flush := func() {
		if facts > 0 && len(out) >= noteWord {
			f(string(out))
		}
		out, held, facts = out[:0], "", 0
	}
	for len(s) > 0 {
		s = strings.TrimLeft(s, " ")
		n := strings.IndexByte(s, ' ')
		if n < 0 {
			n = len(s)
		}
		raw := s[:n]
		s = s[n:]
		if raw == "-" || raw == "--" {
			flush()
			continue
		}
		word, ends, opens := bare(raw)
		if opens || len(out)+len(word) > noteMax {
			flush()
		}
		switch l := lower(word); {
		case word == "":
		case linking(l):
			if len(out) > 0 {
				held = word
			}
		case isStop(l) || isFiller(l) || contraction(l):
		case isCommon(l) && !telling(word):
			if len(out) > 0 {
				held = word
			}
		default:
			if held != "" {
				out = append(append(out, ' '), held...)
				held = ""
			}
			if len(out) > 0 {
				out = append(out, ' ')
			}
			out = append(out, word...)
			facts++
		}
		if ends {
			flush()
		}
	}
	flush()
}

// telling reports words that name something by their form: digits, or capitals
// inside.
func telling(w string) bool {
	for i := range len(w) {
		k := kindOf(w[i])
		if k&chDigit != 0 || i > 0 && k&chUpper != 0 {
			return true
		}
	}
	return false
}

// linking reports small words that are kept between two others, since they show
// how these belong together.
func linking(w string) bool {
	switch w {
	case "not", "no", "never", "without", "of", "for", "by", "from", "to", "per", "until", "under", "over", "than", "at", "with", "in", "on":
		return true
	}
	return false
}

// bare takes the punctuation off a word. ends reports that a clause ends behind
// it, opens that one begins with it.
func bare(w string) (word string, ends, opens bool) {
	const marks = ",;:.!?)(\"[]"
	from, to := 0, len(w)
	for from < to {
		if strings.IndexByte(marks, w[from]) >= 0 {
			opens = opens || w[from] == '('
			from++
			continue
		}
		if punct3(w, from) || w[from] == '-' || w[from] == '*' || w[from] == '\'' {
			if punct3(w, from) {
				from += 3
			} else {
				from++
			}
			opens = true
			continue
		}
		break
	}
	for to > from {
		if strings.IndexByte(marks, w[to-1]) >= 0 {
			ends = ends || w[to-1] != '"'
			to--
			continue
		}
		if to-3 >= from && punct3(w, to-3) {
			to -= 3
			ends = true
			continue
		}
		if w[to-1] == '-' || w[to-1] == '*' || w[to-1] == '\'' {
			to--
			continue
		}
		break
	}
	return w[from:to], ends, opens
}

// contraction reports pronouns and verbs that are written together.
func contraction(w string) bool {
	n := strings.IndexByte(w, '\'')
	if n <= 0 {
		return false
	}
	switch w[n:] {
	case "'ve", "'ll", "'re", "'d", "'m":
		return true
	case "'s":
		return isStop(w[:n]) || isCommon(w[:n])
	}
	return false
}
