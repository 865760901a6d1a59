package extract

import "math"

// concept is something that a summary can hold or lose: an identifier, a number
// with its word, a name, a content word.
type concept struct {
	units   int32   // in how many units it stands
	calls   int32   // how many of them are messages or calls, not outputs
	last    int32   // the last message that was counted
	class   class   // its most telling class
	role    float32 // the greatest weight of a speaker who said it
	focus   bool
	common  bool  // an everyday word
	covered uint8 // how often the summary holds it by now
	weight  float32
}

// lexicon gives concepts their numbers. Keys are 64 bit hashes.
type lexicon struct {
	index map[uint64]int32
	list  []concept
	units int
}

func newLexicon() *lexicon { return &lexicon{index: make(map[uint64]int32, 4096)} }

const fnvBasis, fnvPrime = 14695981039346656037, 1099511628211

// hash is FNV-1a over the lower case letters of s.
func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

func (l *lexicon) intern(h uint64, c class) int32 {
	id, ok := l.index[h]
	if !ok {
		id = int32(len(l.list))
		l.index[h] = id
		l.list = append(l.list, concept{class: c, last: -1})
		return id
	}
	if l.list[id].class < c {
		l.list[id].class = c
	}
	return id
}

// concepts appends the concepts of a unit to dst.
func (l *lexicon) concepts(dst []int32, s string) []int32 {
	start := len(dst)
	var before uint64 // the content word before, for numbers
	pending := uint64(0)
	pendingClass := classNone
	var prev token
	for i := 0; ; {
		t, ok := next(s, i)
		if !ok {
			break
		}
		i = t.to
		w := s[t.from:t.to]
		c := atStart(s, t)
		h := hash(fnvBasis, w)
		if c != classNone && pending != 0 {
			dst = add(dst, start, l.intern(pending*31+h, pendingClass))
			pending = 0
		}
		switch c {
		case classNumber, classNumberWord:
			pending, pendingClass = h, c
			if before != 0 && !ahead(s, t.to) {
				dst = add(dst, start, l.intern(before*31+h, c))
				pending = 0
			}
		case className:
			dst = add(dst, start, l.intern(h, c))
			if prev.class == className && t.from == prev.to+1 {
				dst = add(dst, start, l.intern(before*31+h, c))
			}
		case classIdent, classWord:
			id := l.intern(h, c)
			if c == classWord && isCommon(lower(w)) {
				l.list[id].common = true
			}
			dst = add(dst, start, id)
		}
		if c != classNone {
			before = h
		}
		prev = t
	}
	if pending != 0 {
		dst = add(dst, start, l.intern(pending, pendingClass))
	}
	return dst
}

// ahead reports whether more words follow in the same clause.
func ahead(s string, i int) bool {
	for ; i < len(s); i++ {
		switch {
		case s[i] == ' ':
		case kindOf(s[i])&(chLetter|chDigit) != 0:
			return true
		default:
			return false
		}
	}
	return false
}

// atStart is the class of a token, where a capital letter at the start of a
// sentence means nothing.
func atStart(s string, t token) class {
	if t.class != className {
		return t.class
	}
	w := s[t.from:t.to]
	lw := lower(w)
	if isStop(lw) {
		return classNone
	}
	if isNumberWord(lw) {
		return classNumberWord
	}
	first := t.from == 0 || t.from < 4 && kindOf(s[0])&chLetter == 0
	if t.from >= 2 && s[t.from-1] == ' ' {
		switch s[t.from-2] {
		case '.', '!', '?', ':':
			first = true
		}
	}
	if first && len(w) > 1 && kindOf(w[1])&chUpper == 0 {
		return classWord
	}
	return className
}

func add(dst []int32, start int, id int32) []int32 {
	for _, d := range dst[start:] {
		if d == id {
			return dst
		}
	}
	if len(dst)-start >= 64 {
		return dst
	}
	return append(dst, id)
}

// weigh gives every concept its weight, once all units are known.
func (l *lexicon) weigh() {
	n := math.Log(1 + float64(max(l.units, 1)))
	for i := range l.list {
		c := &l.list[i]
		rare := math.Log(1+float64(l.units)/float64(max(c.units, 1))) / n
		often := float64(min(c.calls, 4)) / 4
		w := 0.0
		switch c.class {
		case classIdent:
			w = 3.2 + 3.2*often
		case classNumber:
			w = 3.0 + 0.5*often
		case classNumberWord:
			w = 1.6
		case className:
			w = 3.0 * (0.4 + 0.6*rare)
		case classWord:
			w = 0.6 * (0.6 + 0.4*rare)
			if c.common {
				w *= 0.1
			}
		case classNone:
		}
		if c.focus {
			w *= 3
		}
		c.weight = float32(w) * c.role
	}
}

// left is what a concept is still worth, when the summary holds it n times.
func left(n uint8) float32 {
	switch n {
	case 0:
		return 1
	case 1:
		return 0.2
	case 2:
		return 0.06
	}
	return 0.01
}
