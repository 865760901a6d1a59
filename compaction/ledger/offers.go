package ledger

import "container/heap"

// offer is something that may be shown, with how good it is.
type offer struct {
	gain float64
	at   int
}

// offers is a heap, the best one first: of most of them, none but the first few are looked at.
type offers []offer

// Len implements [heap.Interface].
func (h offers) Len() int { return len(h) }

// Less reports whether an offer comes before another one: the better one, of two that are equal the first.
func (h offers) Less(i, j int) bool {
	return h[i].gain > h[j].gain || h[i].gain == h[j].gain && h[i].at < h[j].at
}

// Swap implements [heap.Interface].
func (h offers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *offers) Push(o any) { *h = append(*h, o.(offer)) } //nolint:errcheck,forcetypeassert // nothing else is pushed

// Pop implements [heap.Interface].
func (h *offers) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// order makes a heap of a list.
func (h *offers) order() { heap.Init(h) }

// pop takes the best offer away.
func (h *offers) pop() offer { return heap.Pop(h).(offer) } //nolint:errcheck,forcetypeassert // nothing else was pushed

// push adds an offer.
func (h *offers) push(o offer) { heap.Push(h, o) }
