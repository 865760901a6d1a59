package ledger

import "strings"

// holding has for each candidate whether a text holds it, as a name or as a part of one. It is a map of names, made for many short
// look-ups: parts of names are seldom candidates.
type holding struct {
	first [4096]int32 // of the candidates of a hash, from 1 on
	list  []entry
	least int  // bytes of the shortest candidate
	talk  bool // an id with a number behind it holds the name in front of that
}

// entry is a candidate.
type entry struct {
	name string
	held bool
	next int32 // of the same hash
}

func (p *page) held(list []string, named []int) *holding {
	h := &holding{list: make([]entry, 1, len(list)+len(named)+1), least: maxToken, talk: p.share.talk}
	for _, n := range list {
		h.candidate(n)
	}
	for _, w := range named {
		if n := p.lex.label[w]; strings.IndexByte(n, ' ') < 0 { // no name has a blank
			h.candidate(n)
		}
	}
	for sc := (scanner{c: newClasses(), s: string(p.b)}); ; {
		k, ok := sc.next()
		if !ok {
			return h
		}
		h.add(k)
	}
}

// hash is a number of some bytes of a name, and of its length.
func hash(n string) int {
	k := len(n) - 1
	h := len(n)*31 + int(n[0])
	h = h*31 + int(n[k/4])
	h = h*31 + int(n[k/2])
	h = h*31 + int(n[k-k/4])
	h = h*31 + int(n[max(0, k-1)])
	h = h*31 + int(n[k])
	return (h ^ h>>12) % 4096
}

// find is the place of a candidate, 0 for none.
func (h *holding) find(n string) int32 {
	if n == "" {
		return 0
	}
	i := h.first[hash(n)]
	for i != 0 && h.list[i].name != n {
		i = h.list[i].next
	}
	return i
}

func (h *holding) candidate(n string) {
	h.field(n, false)
	h.least = min(h.least, len(n))
}

// field adds a name that need not be listed if it is held.
func (h *holding) field(n string, held bool) {
	if i := h.find(n); i != 0 {
		h.list[i].held = held
	} else if n != "" {
		k := hash(n)
		h.list = append(h.list, entry{n, held, h.first[k]})
		h.first[k] = int32(len(h.list) - 1)
	}
}

// has reports a name that the text holds.
func (h *holding) has(n string) bool { return h.list[h.find(n)].held }

// maxPieces bounds the parts of one name.
const maxPieces = 24

// add notes a name with what a reader sees in it: the beginnings and ends of a path at its slashes, its
// elements, and the parts between dots.
func (h *holding) add(n string) {
	if h.talk {
		if stem, ok := strings.CutSuffix(strings.TrimRight(n, "0123456789"), "_"); ok {
			h.note(stem) // gift_card of gift_card_77: in a session of work test_1 is no test
		}
	}
	if h.note(n) || strings.IndexByte(n, '/') < 0 && strings.IndexByte(n, '.') < 0 {
		return
	}
	from := 0
	for i, pieces := 0, 0; i < len(n) && pieces < maxPieces; i++ {
		if n[i] != '/' && n[i] != '.' && n[i] != ':' {
			continue
		}
		pieces++
		h.note(n[:i])
		h.note(n[i:])
		h.note(n[i+1:])
		h.note(n[from:i])
		from = i + 1
	}
	h.note(n[from:])
}

// note notes a name, and reports whether the text holds it already.
func (h *holding) note(n string) bool {
	if len(n) < h.least {
		return false
	}
	i := h.find(n)
	held := h.list[i].held
	h.list[i].held = i != 0
	return held
}
