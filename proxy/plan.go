package proxy

import (
	"crypto/rand"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// plan is what a compaction replaces, made while the body of the request was there.
type plan struct {
	epoch          int
	last           wire.Hash
	id             string
	fromID, toID   string
	messages       []abi.Message
	count          int
	removed, kept  int64
	tokens         int64
	build          func(text string) lane.Swap
	identity       abi.RunIdentity
	threshold, win int64
}

// planner returns a function that plans a compaction, or nothing where one is far away. Until it is called it keeps the request's body.
func (x *exchange) planner() func() *plan {
	c := x.s.cfg.Compaction
	if c == nil || x.ln == nil || x.why != "" || x.req == nil || x.req.Fixed != "" || x.req.Text {
		return nil
	}
	x.ln.Lock()
	defer x.ln.Unlock()
	if x.ln.Usage.Prompt() < c.Policy.ThresholdTokens/3 || len(x.ln.Hashes) != x.items {
		return nil // it is far away, and the body need not be kept
	}
	original, epoch, hashes := x.req, x.ln.Epoch, x.ln.Hashes
	return func() *plan {
		r := edit(original, x.ln.State)
		if epoch != x.ln.Epoch || r == nil {
			return nil
		}
		ratio := x.ln.Money.Ratio
		weigh := func(i int) int64 { return int64(float64(r.Items[i].To-r.Items[i].From) * ratio) }
		head, places := cuts(r, x.ln.State)
		cut, turn := choose(r, places, head, c.Policy.KeepRecentTokens, weigh)
		if cut <= head || cut > len(hashes) || x.ln.Swap != nil && cut <= x.ln.Swap.To {
			return nil
		}
		p := &plan{epoch: x.ln.Epoch, last: hashes[cut-1], messages: sourceOf(r, head, cut), count: cut - head, id: rand.Text()}
		p.fromID, p.toID = x.ln.Span(head, cut)
		for i := head; i < cut; i++ {
			p.removed += weigh(i)
		}
		for i := cut; i < len(r.Items); i++ {
			p.kept += weigh(i)
		}
		left := x.ln.Left
		var names []string
		if x.s.cfg.Store != nil && r.TakesTools() {
			names = handles(x.ln.Epoch, head, cut)
		}
		p.identity, p.threshold, p.win = x.identity(), c.Policy.ThresholdTokens, x.s.window()
		p.build = func(text string) lane.Swap {
			item, plain := standIn(r, head, cut, turn, left, standInText(text, cut-head, names))
			return lane.Swap{
				From: head, To: cut, First: p.fromID, Item: item, Plain: plain, Handles: names, Tokens: int64(float64(len(item)) * ratio), Removed: p.removed,
			}
		}
		return p
	}
}

// consider starts a compaction in the background if the policy admits one. The lane is locked.
func (x *exchange) consider(a *attached) {
	c := x.s.cfg.Compaction
	if c == nil || a.working || x.plan == nil {
		return
	}
	now, tokens := x.s.cfg.Now(), x.ln.Usage.Prompt()
	soon := x.ln.Swaps == 0 || x.ln.Calls-x.ln.CallsAtSwap >= c.Every-lead || tokens > x.limit()*8/10
	if floor := x.ln.Floor; floor > 0 && tokens < min(floor+c.Policy.ThresholdTokens/4, x.limit()*8/10) {
		return // one was taken back, and the conversation has hardly grown since
	}
	if now.Before(a.waiting) || tokens < c.Policy.ThresholdTokens || !soon || a.ready != nil && !a.ready.stale {
		return
	}
	p := x.plan()
	if p == nil || !x.pays(a, p, tokens) {
		return
	}
	req := x.admission(a, p, now)
	d, err := c.Admitter.Admit(x.s.ctx, req)
	if err != nil || !d.Allowed {
		if d != nil && d.RetryAfterMS > 0 {
			a.waiting = now.Add(time.Duration(min(d.RetryAfterMS, time.Hour.Milliseconds())) * time.Millisecond)
		}
		x.s.stats.compactionsRefused.Add(1)
		return
	}
	select {
	case x.s.slots <- struct{}{}:
	default:
		return
	}
	a.working, a.started = true, now
	a.fired++
	x.s.stats.compactions.Add(1)
	x.event(compaction.Event{
		Kind: compaction.EventStarted, AttemptID: p.id, Attempt: int(a.fired), Model: x.model, FromID: p.fromID, ToID: p.toID, PreTokens: tokens,
		Messages: p.count,
	})
	x.save(x.s.ctx)
	x.s.stats.compacting.Add(1)
	state, spent := a.state, &spending{client: x.clientKey()}
	x.s.tasks.Go(func() {
		defer x.s.stats.compacting.Add(-1)
		defer func() { <-x.s.slots }()
		x.compact(a, state, p, spent)
	})
}

// lead is how many calls before a swap is allowed its summary is made: what comes behind it is written anew.
const lead = 1

// pays reports whether a compaction that is planned will be put in: it pays for itself soon, or the window is nearly full.
func (x *exchange) pays(a *attached, p *plan, tokens int64) bool {
	c := x.s.cfg.Compaction
	rates := money.RatesOf(x.proto, x.model)
	n := rates.BreakEven(x.s.swapOf(p), false)
	p.tokens = tokens
	return n >= 0 && 2*n < a.expected(c.Expected, 0) || tokens > x.limit()*8/10
}

// swapOf is a compaction that is planned, with what its summary is likely to cost.
func (s *Server) swapOf(p *plan) money.Swap {
	sw := money.Swap{X: p.removed, S: s.cfg.Compaction.Policy.SummaryTokens, K: p.kept}
	if rate := s.billed.Load(); rate != nil {
		sw.Bill = *rate * float64(p.removed)
	}
	return sw
}

// limit is at how many tokens the window is full, or the client compacts by itself.
func (x *exchange) limit() int64 {
	window := x.s.window()
	if own := threshold(x.id.client, window); own > 0 {
		return min(own, window)
	}
	return window
}

// admission is what the policy is asked.
func (x *exchange) admission(a *attached, p *plan, now time.Time) *abi.AdmitRequest {
	c := x.s.cfg.Compaction
	u := x.ln.Usage
	tokens := u.Prompt()
	rates := money.RatesOf(x.proto, x.model)
	usd := x.s.cfg.Price(x.model)
	sw := x.s.swapOf(p)
	extra, saved := rates.Extra(sw, false)
	r := &abi.AdmitRequest{
		ABI: abi.Version, ThreadID: x.ln.ID, NowMS: now.UnixMilli(), TokensBefore: &tokens, RangeTokens: p.removed,
		ThresholdTokens: c.Policy.ThresholdTokens, WindowTokens: x.s.window(), AttemptCount: a.fired, MaxAttempts: 0, Failures: a.failed,
		Cache: &abi.CacheUse{AtMS: x.ln.Answered.UnixMilli(), PromptTokens: tokens, ReadTokens: u.Read, WrittenTokens: u.Write5m + u.Write1h},
		Cost: &abi.CompactionCost{
			SummaryTokens: sw.S, RewriteTokens: sw.S + sw.K, SavedTokens: sw.X - sw.S,
			RewriteMicros: int64(extra * usd * 1e6), SavedMicros: int64(saved * usd * 1e6),
		},
	}
	if !a.started.IsZero() {
		r.LastStartMS = a.started.UnixMilli()
	}
	return r
}
