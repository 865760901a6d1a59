package money

import (
	"strings"
	"time"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// Rates are the prices of a model in units of one token of fresh input, and the rules of its prompt cache.
type Rates struct {
	Read, Write5m, Write1h, Output float64
	// Minimum is the shortest prefix that is kept, in tokens; Life how long it is.
	Minimum int64
	Life    time.Duration
	// Marked means that prefixes are kept at markers, and found at most LookBack blocks before one.
	Marked bool
}

// lookBack is how many blocks before a marker a prefix is found.
const lookBack = 20

// table has the rates by prefixes of model names, the first that fits. As of November 2026, from the vendors' price
// lists and guides.
func table() []struct {
	prefix string
	r      Rates
} {
	short, half := 5*time.Minute, 30*time.Minute
	claude := func(least int64) Rates {
		return Rates{Read: 0.1, Write5m: 1.25, Write1h: 2, Output: 5, Minimum: least, Life: short, Marked: true}
	}
	return []struct {
		prefix string
		r      Rates
	}{
		{"claude-haiku", claude(4096)},
		{"claude-opus-4-5", claude(4096)},
		{"claude-opus-4-6", claude(4096)},
		{"claude", claude(1024)},
		{"gpt-5.6", Rates{Read: 0.1, Write5m: 1.25, Output: 8, Minimum: 1024, Life: half}},
		{"gpt-5", Rates{Read: 0.1, Write5m: 1, Output: 8, Minimum: 1024, Life: 10 * time.Minute}},
		{"gpt-4.1", Rates{Read: 0.25, Write5m: 1, Output: 4, Minimum: 1024, Life: 10 * time.Minute}},
		{"gpt-4o", Rates{Read: 0.5, Write5m: 1, Output: 4, Minimum: 1024, Life: 10 * time.Minute}},
		{"o4", Rates{Read: 0.25, Write5m: 1, Output: 4, Minimum: 1024, Life: 10 * time.Minute}},
	}
}

// RatesOf returns those of a model.
func RatesOf(p wire.Protocol, model string) Rates {
	if _, rest, ok := strings.Cut(model, "/"); ok {
		model = rest
	}
	for _, e := range table() {
		if strings.HasPrefix(model, e.prefix) {
			return e.r
		}
	}
	if p == wire.Messages {
		return Rates{Read: 0.1, Write5m: 1.25, Write1h: 2, Output: 5, Minimum: 1024, Life: 5 * time.Minute, Marked: true}
	}
	return Rates{Read: 0.1, Write5m: 1, Output: 8, Minimum: 1024, Life: 10 * time.Minute}
}

// Units is what a usage costs, in units of one token of fresh input.
func (r *Rates) Units(u wire.Usage) float64 {
	return float64(u.Input) + r.Read*float64(u.Read) + r.Write5m*float64(u.Write5m) + r.Write1h*float64(u.Write1h) + r.Output*float64(u.Output)
}

// Swap is what is known when a compaction could be put in, in tokens: X goes, S replaces it, K stays behind it. Bill is
// what the compaction itself will cost, in units, 0 when it is paid for.
type Swap struct {
	X, S, K int64
	Bill    float64
}

// Extra is what the swap costs once, warm or cold, and Saved what each later call saves, in units. The first call is
// one that pays the extra.
func (r *Rates) Extra(s Swap, cold bool) (extra, saved float64) {
	saved = r.Read * float64(s.X-s.S)
	if cold {
		return r.Write5m*float64(s.S-s.X) + s.Bill, saved
	}
	return r.Write5m*float64(s.S+s.K) - r.Read*float64(s.X+s.K) + s.Bill, saved
}

// BreakEven is after how many calls a swap has paid for itself, 0 if at once, and -1 if never.
func (r *Rates) BreakEven(s Swap, cold bool) float64 {
	extra, saved := r.Extra(s, cold)
	switch {
	case extra <= 0:
		return 0
	case saved <= 0:
		return -1
	}
	return extra / saved
}
