package llm

import (
	"cmp"
	"maps"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Price is the price of a model, in USD per million tokens.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// CacheRead and CacheWrite (with the shortest lifetime on offer) equal Input when 0.
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
	// Long, if set, is the price of requests with prompts of more than LongPrompt tokens.
	LongPrompt int64  `json:"long_prompt,omitempty"`
	Long       *Price `json:"long,omitempty"`
}

// Prices maps prefixes of model names to prices; the longest matching prefix counts. A date or a variant may follow the
// prefix, a version number may not: claude-opus-5 covers claude-opus-5-20260724 but not claude-opus-5-5, and gpt-5 does
// not cover gpt-5.1.
type Prices map[string]Price

// With returns a copy in which overrides replace or extend the entries.
func (p Prices) With(overrides Prices) Prices {
	out := maps.Clone(p)
	if out == nil {
		out = make(Prices, len(overrides))
	}
	maps.Copy(out, overrides)
	return out
}

// Of returns the price of a model. A name such as openai/gpt-5 is looked up as a whole, then without the part before the
// slash.
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

// covers reports whether an entry applies to a model: a prefix that no version number follows.
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

// Cost returns what a request cost, or false if the model has no price. PromptTokens include cache reads and writes. For
// usage summed over several requests, the long-prompt price may apply although no single request was long.
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

// DefaultPrices returns the list prices of Anthropic and OpenAI as of October 2026: standard tier, no regional surcharge,
// cache writes with a lifetime of five minutes (Anthropic) or thirty (OpenAI). Prices change: override them with
// [Prices.With].
func DefaultPrices() Prices {
	return claudePrices().With(gptPrices())
}

func claudePrices() Prices {
	// Cache writes cost a quarter more than input.
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
	// Since GPT-5.6, cache writes cost a quarter more than input.
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
