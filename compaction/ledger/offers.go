package ledger

// offer is something that may be shown, with how good it is.
type offer struct {
	gain float64
	at   int
}

// before reports whether an offer comes before another one: the better one, of two that are equal the first.
func (o offer) before(p offer) bool { return o.gain > p.gain || o.gain == p.gain && o.at < p.at }

// offers is a heap, the best one first: of most of them, none but the first few are looked at.
type offers []offer

// order makes a heap of a list.
func (h offers) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// down moves an offer to its place behind better ones.
func (h offers) down(i int) {
	o := h[i]
	for {
		next := 2*i + 1
		if next+1 < len(h) && h[next+1].before(h[next]) {
			next++
		}
		if next >= len(h) || !h[next].before(o) {
			h[i] = o
			return
		}
		h[i] = h[next]
		i = next
	}
}

// pop takes the best offer away.
func (h *offers) pop() offer {
	list := *h
	best, last := list[0], len(list)-1
	list[0] = list[last]
	if *h = list[:last]; last > 0 {
		h.down(0)
	}
	return best
}

// push adds an offer.
func (h *offers) push(o offer) {
	*h = append(*h, o)
	list, i := *h, len(*h)-1
	for i > 0 && o.before(list[(i-1)/2]) {
		list[i] = list[(i-1)/2]
		i = (i - 1) / 2
	}
	list[i] = o
}
