package compaction

import "github.com/mortise-dev/mortise/abi"

// Shrink makes room at once after a provider has refused a view of the log as too
// large: it cuts the view with [Truncate], to half of its size or to the window, whichever is
// less. It takes nothing out of the log, and waits for nothing. It reports false when
// nothing can be left out. The thread's estimates grow as far as the refusal shows that
// they were too small, so that compactions start earlier.
func (c *Compactor) Shrink(id string, view []abi.Message) ([]abi.Message, bool) {
	t := c.use(id)
	defer t.mu.Unlock()
	estimate := t.index.weigh(view)
	if estimate <= 0 {
		return view, false
	}
	before := t.bill.apply(estimate)
	if seen := min(float64(c.conf().Policy.WindowTokens)/float64(estimate), maxFactor); seen > 1 {
		t.bill.factor = max(t.bill.factor, seen)
	}
	limit := c.conf().Policy.WindowTokens - c.conf().Policy.ReserveTokens
	fits := int64(float64(limit) * float64(estimate) / float64(t.bill.apply(estimate)))
	cut := Truncate(view, min(estimate/2, fits))
	after := t.index.weigh(cut)
	if after >= estimate {
		return view, false
	}
	c.observe(t, Event{
		Kind: EventFallback, PreTokens: before, PostTokens: t.bill.apply(after), ViewMessages: len(cut),
		Reason: "the provider refused the context as too large",
	})
	return cut, true
}
