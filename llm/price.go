package llm

import (
	"cmp"
	"maps"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Price is what a model costs, in USD per million tokens.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// CacheRead and CacheWrite (for the shortest time that the provider sells) are as Input when 0.
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
	// Long is the price of a request whose prompt is longer than LongPrompt tokens. Nil is the same.
	LongPrompt int64  `json:"long_prompt,omitempty"`
	Long       *Price `json:"long,omitempty"`
}

// Prices are those of models, by the beginning of their names; the longest counts. What follows it may be a date or a
// variant, but not a version: claude-opus-5 is for claude-opus-5-20260724, not for claude-opus-5-5, and gpt-5 is not for
// gpt-5.1.
type Prices map[string]Price

// With returns prices of which those of overrides replace entries of the same name.
func (p Prices) With(overrides Prices) Prices {
	out := maps.Clone(p)
	if out == nil {
		out = make(Prices, len(overrides))
	}
	maps.Copy(out, overrides)
	return out
}

// Of returns the price of a model. A name such as openai/gpt-5 is looked up as it is, then without what is in front of
// the slash.
func (p Prices) Of(model string) (Price, bool) {
	best, found := "", false
	for name := range p {
		if covers(name, model) && (!found || len(name) > len(best)) {
			best, found = name, true
		}
	}
	if _, rest, ok := strings.Cut(model, "/"); !found && ok {
		return p.Of(rest)
	}
	return p[best], found
}

// covers says that name is the beginning of a model's name, and what follows is not another version.
func covers(name, model string) bool {
	rest, ok := strings.CutPrefix(model, name)
	if !ok || name == "" {
		return false
	}
	if rest == "" {
		return true
	}
	if !strings.ContainsRune("-@:[", rune(rest[0])) {
		return false
	}
	digits := len(rest) - 1 - len(strings.TrimLeft(rest[1:], "0123456789"))
	return rest[0] != '-' || digits == 0 || digits > 2
}

// Cost is what a request cost, or false when the model has no price. The tokens of the prompt include those of the
// cache. Of usage that is the sum of several requests it is the cost of a single one of that size.
func (p Prices) Cost(model string, u abi.Usage) (usd float64, ok bool) {
	price, ok := p.Of(model)
	if !ok {
		return 0, false
	}
	if price.Long != nil && u.PromptTokens > price.LongPrompt {
		price = *price.Long
	}
	fresh := max(0, u.PromptTokens-u.CacheReadTokens-u.CacheCreationTokens)
	usd = float64(fresh)*price.Input + float64(u.CompletionTokens)*price.Output +
		float64(u.CacheReadTokens)*cmp.Or(price.CacheRead, price.Input) +
		float64(u.CacheCreationTokens)*cmp.Or(price.CacheWrite, price.Input)
	return usd / 1e6, true
}

// DefaultPrices are list prices of Anthropic and OpenAI as of October 2026, without discounts and surcharges for a tier
// or a region, cache writes for five minutes (Anthropic) and thirty (OpenAI). They change: set your own with
// [Prices.With].
func DefaultPrices() Prices {
	return claudePrices().With(gptPrices())
}

func claudePrices() Prices {
	// A write costs a quarter more than input.
	claude := func(input, read, output float64) Price {
		return Price{Input: input, Output: output, CacheRead: read, CacheWrite: input * 1.25}
	}
	haiku, longHaiku := claude(0.1, 0.01, 0.5), claude(0.5, 0.05, 2.5)
	haiku.LongPrompt, haiku.Long = 100_000, &longHaiku
	return Prices{
		"claude-fable-5-1":  claude(10, 0.25, 50),
		"claude-mythos-5-1": claude(10, 0.25, 50),
		"claude-fable-5":    claude(10, 1, 50),
		"claude-mythos-5":   claude(10, 1, 50),
		"claude-opus-5-5":   claude(4, 0.2, 20),
		"claude-opus-5":     claude(5, 0.5, 25),
		"claude-opus-4-8":   claude(5, 0.5, 25),
		"claude-opus-4-7":   claude(5, 0.5, 25),
		"claude-opus-4-6":   claude(5, 0.5, 25),
		"claude-opus-4-5":   claude(5, 0.5, 25),
		"claude-opus-4-1":   claude(15, 1.5, 75),
		"claude-opus-4":     claude(15, 1.5, 75),
		"claude-sonnet-5-5": claude(2, 0.1, 10),
		"claude-sonnet-5":   claude(2, 0.2, 10),
		"claude-sonnet-4-6": claude(3, 0.3, 15),
		"claude-sonnet-4-5": claude(3, 0.3, 15),
		"claude-sonnet-4":   claude(3, 0.3, 15),
		"claude-haiku-5-5":  haiku,
		"claude-haiku-4-5":  claude(1, 0.1, 5),
		"claude-3-7-sonnet": claude(3, 0.3, 15),
		"claude-3-5-haiku":  claude(0.8, 0.08, 4),
	}
}

func gptPrices() Prices {
	flat := func(input, read, output float64) Price {
		return Price{Input: input, Output: output, CacheRead: read}
	}
	// Long prompts cost twice the input and half more of the output.
	tiered := func(p Price) Price {
		p.LongPrompt = 272_000
		p.Long = &Price{Input: 2 * p.Input, Output: 1.5 * p.Output, CacheRead: 2 * p.CacheRead, CacheWrite: 2 * p.CacheWrite}
		return p
	}
	// Since GPT-5.6 a write costs a quarter more than input.
	written := func(input, read, output float64) Price {
		return tiered(Price{Input: input, Output: output, CacheRead: read, CacheWrite: 1.25 * input})
	}
	return Prices{
		"gpt-6.1-sol":   written(2, 0.1, 10),
		"gpt-6.1-terra": written(1, 0.05, 5),
		"gpt-6-astra":   written(10, 1, 50),
		"gpt-6-sol":     written(2, 0.2, 10),
		"gpt-6-luna":    written(0.1, 0.01, 0.5),
		"gpt-5.6-sol":   written(4, 0.4, 20),
		"gpt-5.6-terra": written(2, 0.2, 12),
		"gpt-5.6-luna":  written(0.2, 0.02, 1.2),
		"gpt-5.5-pro":   tiered(flat(30, 0, 180)),
		"gpt-5.5":       tiered(flat(5, 0.5, 30)),
		"gpt-5.4-pro":   tiered(flat(30, 0, 180)),
		"gpt-5.4-mini":  flat(0.75, 0.075, 4.5),
		"gpt-5.4-nano":  flat(0.2, 0.02, 1.25),
		"gpt-5.4":       tiered(flat(2.5, 0.25, 15)),
		"gpt-5.3-codex": flat(1.75, 0.175, 14),
		"gpt-5.2-pro":   flat(21, 0, 168),
		"gpt-5.2":       flat(1.75, 0.175, 14),
		"gpt-5.1":       flat(1.25, 0.125, 10),
		"gpt-5-pro":     flat(15, 0, 120),
		"gpt-5-mini":    flat(0.25, 0.025, 2),
		"gpt-5-nano":    flat(0.05, 0.005, 0.4),
		"gpt-5":         flat(1.25, 0.125, 10),
		"gpt-4.1-mini":  flat(0.4, 0.1, 1.6),
		"gpt-4.1-nano":  flat(0.1, 0.025, 0.4),
		"gpt-4.1":       flat(2, 0.5, 8),
		"gpt-4o-mini":   flat(0.15, 0.075, 0.6),
		"gpt-4o":        flat(2.5, 1.25, 10),
		"o4-mini":       flat(1.1, 0.275, 4.4),
		"o3-pro":        flat(20, 0, 80),
		"o3-mini":       flat(1.1, 0.55, 4.4),
		"o3":            flat(2, 0.5, 8),
		"o1-pro":        flat(150, 0, 600),
		"o1":            flat(15, 7.5, 60),
	}
}
