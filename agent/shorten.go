package agent

import (
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// shortened is a view that was too large, and what it was cut to. It replaces
// the beginning of later views, so that requests begin alike, until a compaction takes
// its place.
type shortened struct {
	from, to []abi.Message
	// ceiling is the weight of the smallest view that a provider refused, or 0.
	ceiling int
}

// refused remembers how large a view was that a provider refused.
func (t *Thread) refused(weight int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.short.ceiling == 0 || weight < t.short.ceiling {
		t.short.ceiling = weight
	}
}

// shorten remembers what a view was cut to.
func (t *Thread) shorten(from, to []abi.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.short.from, t.short.to = from, to
}

// edit takes over a message that was changed. Slices in other hands stay as they are.
func (s *shortened) edit(m abi.Message) {
	i := slices.IndexFunc(s.to, func(o abi.Message) bool { return o.ID == m.ID })
	if i >= 0 {
		s.to = slices.Clone(s.to)
		s.to[i] = m
	}
}

func (t *Thread) shortened() shortened {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.short
}

// over lays the cut over the view that it was made of, and what came after.
func (s *shortened) over(view []abi.Message) []abi.Message {
	n := len(s.from)
	if n == 0 || len(view) < n || view[0].ID != s.from[0].ID || view[n-1].ID != s.from[n-1].ID {
		return view
	}
	return slices.Concat(s.to, view[n:])
}

// fitted is a view below the size that a provider refused, if it can be cut to that.
func (r *run) fitted(view []abi.Message) []abi.Message {
	short := r.thread.shortened()
	if short.ceiling == 0 {
		return view
	}
	out := short.over(view)
	if weight(out) < short.ceiling {
		return out
	}
	if less, ok := r.cut(out); ok {
		r.thread.shorten(view, less)
		return less
	}
	return out
}
