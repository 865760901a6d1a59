package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// summary is a compaction that waits to be put in.
type summary struct {
	swap  lane.Swap
	epoch int
	// last is the identity of the last item that it replaces.
	last   wire.Hash
	marker compaction.Marker
	// tokens is how long the prompt was when it was made.
	tokens int64
	// stale means that another one should be made.
	stale bool
}

// life is how long the provider keeps a prefix of a request.
func life(s money.Sequence, p wire.Protocol, model string) time.Duration {
	r := money.RatesOf(p, model)
	out := time.Duration(0)
	for i := range s {
		out = max(out, s[i].TTL)
	}
	if out == 0 || !r.Marked {
		return r.Life
	}
	return out
}

// trySwap puts a compaction in that is ready, if now is the moment. It reports whether it did.
func (x *exchange) trySwap(ctx context.Context, a *attached, turn bool) bool {
	c := x.s.cfg.Compaction
	s := a.ready
	if c == nil || s == nil || x.change == lane.Retry {
		return false
	}
	if !x.fits(s) {
		a.ready = nil
		x.s.stats.dropped.Add(1)
		return false
	}
	tokens, k, base := x.sizes(s)
	trigger := c.Policy.ThresholdTokens
	if base+s.swap.Tokens+k > trigger && base+s.swap.Tokens+k > tokens*9/10 {
		a.ready = nil // it would come again at once
		x.s.stats.dropped.Add(1)
		return false
	}
	forced := tokens > x.limit()*9/10
	if x.ln.Swaps > 0 && x.ln.Calls-x.ln.CallsAtSwap < c.Every && !forced {
		return false
	}
	cold := !x.ln.Answered.IsZero() && x.at.Sub(x.ln.Answered) >= x.ln.TTL
	rates := money.RatesOf(x.proto, x.model)
	n := rates.BreakEven(money.Swap{X: s.swap.Removed, S: s.swap.Tokens, K: k}, cold) // the summary is paid for, whatever becomes of it
	if n < 0 && !forced || !forced && !cold && !turn && 2*n >= a.expected(c.Expected, x.ln.Step) {
		s.stale = true // too much came behind what it replaces
		return false
	}
	x.put(ctx, a, s)
	return true
}

// fits reports whether the client still has what a summary replaces.
func (x *exchange) fits(s *summary) bool {
	return s.epoch == x.ln.Epoch && s.swap.To < x.items && s.swap.To <= len(x.ln.Hashes) && x.ln.Hashes[s.swap.To-1] == s.last &&
		x.req.Items[s.swap.To].Role == wire.Assistant
}

// put makes a summary part of the lane.
func (x *exchange) put(ctx context.Context, a *attached, s *summary) {
	sw := s.swap
	sw.Marker = s.marker.ID
	x.ln.Swap, a.ready, x.ln.Floor = &sw, nil, 0
	m := s.marker
	m.At, m.PreTokens = x.s.cfg.Now(), x.ln.Usage.Prompt()
	m.PostTokens = m.PreTokens + sw.Tokens - sw.Removed
	x.ln.Marker = &m
	x.event(compaction.Event{
		Kind: compaction.EventSwapped, AttemptID: m.ID, Policy: m.Policy, FromID: m.FromID, ToID: m.ToID, PreTokens: m.PreTokens,
		PostTokens: m.PostTokens, Messages: sw.To - sw.From, Quality: &m.Quality,
	})
	x.ln.Swaps++
	x.ln.CallsAtSwap = x.ln.Calls
	x.ln.Money.Swaps++
	x.s.stats.swaps.Add(1)
	x.s.cfg.Logger.InfoContext(ctx, "compaction_swapped", "lane", x.ln.ID, "items", sw.To-sw.From, "tokens_removed", sw.Removed, "tokens_added", sw.Tokens)
	if rt := x.s.cfg.Runtime; rt != nil && len(rt.Order(abi.AfterCompaction)) > 0 {
		_, _ = rt.Fire(ctx, a.state, phases.Frame{
			Phase: abi.AfterCompaction, Run: x.identity(), Step: x.ln.Step, Messages: x.flat(), Compaction: &abi.Compaction{
				ID: m.ID, Outcome: abi.CompactionSwapped, RangeTokens: sw.Removed, Messages: sw.To - sw.From,
			},
		})
	}
}

// sizes are estimates of the prompt in tokens: as it would be sent now, what stays behind the summary, and tools and
// system prompt.
func (x *exchange) sizes(s *summary) (tokens, k, base int64) {
	ratio := x.ln.Money.Ratio
	item := 0
	for i := range x.original {
		g := &x.original[i]
		n := int64(float64(g.Weight) * ratio)
		switch {
		case !g.Item:
			base += n
			continue
		case item >= s.swap.To:
			k += n
		case item < s.swap.From:
			base += n
		}
		item++
		tokens += n
	}
	tokens += base
	if old := x.ln.Swap; old != nil {
		tokens += old.Tokens - old.Removed
	}
	return max(tokens, x.ln.Usage.Prompt()), k, base
}

// expected is how many calls are taken to be left: the median of earlier turns, less those of this one.
func (a *attached) expected(otherwise, step int) float64 {
	if len(a.answers) < 3 {
		return float64(otherwise)
	}
	list := slices.Sorted(slices.Values(a.answers))
	return float64(max(otherwise, list[len(list)/2]-step))
}
