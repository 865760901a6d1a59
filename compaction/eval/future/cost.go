package future

import (
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// Prices are those of a provider with a prompt cache, in units of fresh input.
type Prices struct {
	// Read and Write are for input from and into the cache, Output is for what the
	// model writes.
	Read, Write, Output float64
	// Life is how long a cached prefix lasts without use.
	Life time.Duration
	// System is how long the system prompt and the tools are, in tokens.
	System int64
}

// DefaultPrices are 0.1, 1.25 and 5, with five minutes and 18,000 tokens.
func DefaultPrices() Prices {
	return Prices{Read: 0.1, Write: 1.25, Output: 5, Life: 5 * time.Minute, System: 18_000}
}

// calls is the price of the input of the calls behind a compaction, when context
// tokens stand before them, of which cached are in the cache. What the calls
// answer is the same for every text and is left out.
func (p Prices) calls(after []abi.Message, times []time.Time, context, cached int64) float64 {
	price := 0.0
	var last time.Time
	for i := range after {
		if m := &after[i]; m.Role == abi.RoleAssistant {
			if i < len(times) && !times[i].IsZero() {
				if !last.IsZero() && times[i].Sub(last) > p.Life {
					cached = 0
				}
				last = times[i]
			}
			price += p.Read*float64(cached) + p.Write*float64(context-cached)
			cached = context
		}
		context += compaction.EstimateMessage(&after[i])
	}
	return price
}

// whole is the price of the calls without a compaction.
func (p Prices) whole(w *Window) float64 {
	context := p.System + compaction.Estimate(w.Before)
	return p.calls(w.After, w.times(), context, context)
}

// behind is the price of the calls behind a text of some tokens. A text of a model
// costs a call that reads the conversation and writes the text.
func (p Prices) behind(w *Window, tokens int64, model bool) float64 {
	price := p.calls(w.After, w.times(), p.System+tokens, p.System)
	if model {
		price += p.Read*float64(p.System+compaction.Estimate(w.Before)) + p.Output*float64(tokens)
	}
	return price
}

// times are those of After.
func (w *Window) times() []time.Time {
	if len(w.Times) != len(w.Before)+len(w.After) {
		return nil
	}
	return w.Times[len(w.Before):]
}
