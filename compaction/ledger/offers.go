package ledger

// offer is something that may be shown, with how good it is.
type offer struct {
	gain float64
	at   int
}

// before reports the better one of two offers, of equal ones the first.
func (o offer) before(p offer) bool { return o.gain > p.gain || o.gain == p.gain && o.at < p.at }

// offers is a heap, the best one first: most of them are never read. Calls through the interface of
// container/heap would be a fifth of what a rendering of a meeting takes in Wasm.
type offers []offer

// order makes a heap of a list.
func (h offers) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// down moves an offer below those that are better.
func (h offers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// lower gives the best offer a lower gain.
func (h offers) lower(gain float64) {
	h[0].gain = gain
	h.down(0)
}

// pop takes the best offer away.
func (h *offers) pop() offer {
	list := *h
	best := list[0]
	list[0] = list[len(list)-1]
	*h = list[:len(list)-1]
	h.down(0)
	return best
}

// push adds an offer.
func (h *offers) push(o offer) {
	*h = append(*h, o)
	list := *h
	for i := len(list) - 1; i > 0 && list[i].before(list[(i-1)/2]); i = (i - 1) / 2 {
		list[i], list[(i-1)/2] = list[(i-1)/2], list[i]
	}
}
