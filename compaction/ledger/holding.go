package ledger

import "strings"

// holding has for each candidate whether a text holds it, as a name or as a part of one.
type holding struct {
	at    map[string]int // the number of each candidate
	held  []bool
	slots [256]uint64 // a bit for each slot of a candidate: most of what a text has is none, and needs no hash
	least int         // bytes of the shortest candidate
	talk  bool        // an id with a number behind it holds the name in front of that
}

func (p *page) held(list []string, named []int) *holding {
	most := len(list) + len(named)
	h := &holding{at: make(map[string]int, most), held: make([]bool, 0, most), least: maxToken, talk: p.share.talk}
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

func (h *holding) candidate(n string) {
	if n == "" {
		return
	}
	h.at[n] = len(h.held)
	h.held = append(h.held, false)
	h.least = min(h.least, len(n))
	i, bit := slot(n)
	h.slots[i] |= bit
}

// slot is where the bit of a name is: by its length and two of its bytes.
func slot(n string) (at uint8, bit uint64) {
	return n[len(n)-1] ^ n[len(n)/2]<<3 ^ n[len(n)/2]>>5, 1 << (len(n) & 63)
}

// has reports a candidate that the text holds.
func (h *holding) has(n string) bool {
	i, ok := h.at[n]
	return ok && h.held[i]
}

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

// note notes a name, and reports whether it is a candidate that the text held already.
func (h *holding) note(n string) bool {
	if len(n) < h.least {
		return false
	}
	if i, bit := slot(n); h.slots[i]&bit == 0 {
		return false
	}
	i, ok := h.at[n]
	if !ok || h.held[i] {
		return ok
	}
	h.held[i] = true
	return false
}
