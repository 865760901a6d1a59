package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
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
	last wire.Hash
	id   string
	bill float64
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
	tokens, k, base := x.sizes(a, s)
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
	n := rates.BreakEven(money.Swap{X: s.swap.Removed, S: s.swap.Tokens, K: k, Bill: s.bill}, cold)
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
	x.ln.Swap, a.ready = &sw, nil
	x.ln.Swaps++
	x.ln.CallsAtSwap = x.ln.Calls
	x.swapped = true
	x.s.stats.swaps.Add(1)
	x.s.cfg.Logger.InfoContext(ctx, "compaction_swapped", "lane", x.ln.ID, "items", sw.To-sw.From, "tokens_removed", sw.Removed, "tokens_added", sw.Tokens)
	if rt := x.s.cfg.Runtime; rt != nil && len(rt.Order(abi.AfterCompaction)) > 0 {
		_, _ = rt.Fire(ctx, a.state, phases.Frame{
			Phase: abi.AfterCompaction, Run: x.identity(), Step: x.ln.Step, Messages: x.flat(), Compaction: &abi.Compaction{
				ID: s.id, Outcome: abi.CompactionSwapped, RangeTokens: sw.Removed, Messages: sw.To - sw.From,
			},
		})
	}
}

// sizes are estimates of the prompt in tokens: as it would be sent now, what stays behind the summary, and tools and
// system prompt.
func (x *exchange) sizes(a *attached, s *summary) (tokens, k, base int64) {
	ratio := a.account.Ratio
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

// consider starts a compaction in the background if the policy admits one. The lane is locked.
func (x *exchange) consider(a *attached) {
	c := x.s.cfg.Compaction
	if c == nil || a.working || x.plan == nil {
		return
	}
	now, tokens := x.s.cfg.Now(), x.ln.Usage.Prompt()
	soon := x.ln.Swaps == 0 || x.ln.Calls-x.ln.CallsAtSwap >= c.Every-lead || tokens > x.limit()*8/10
	if now.Before(a.waiting) || tokens < c.Policy.ThresholdTokens || !soon || a.ready != nil && !a.ready.stale {
		return
	}
	p := x.plan(tokens)
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
	x.s.stats.compacting.Add(1)
	ln, state := x.ln, a.state
	x.s.tasks.Go(func() {
		defer x.s.stats.compacting.Add(-1)
		defer func() { <-x.s.slots }()
		x.s.compact(ln, a, state, p)
	})
}

// lead is how many calls before a swap is allowed its summary is made: what comes behind it is written anew.
const lead = 1

// pays reports whether a compaction that is planned will be put in: it pays for itself soon, or the window is nearly full.
func (x *exchange) pays(a *attached, p *plan, tokens int64) bool {
	c := x.s.cfg.Compaction
	rates := money.RatesOf(x.proto, x.model)
	n := rates.BreakEven(money.Swap{X: p.removed, S: c.Policy.SummaryTokens, K: p.kept}, false)
	p.tokens = tokens
	return n >= 0 && 2*n < a.expected(c.Expected, 0) || tokens > x.limit()*8/10
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
	sw := money.Swap{X: p.removed, S: c.Policy.SummaryTokens, K: p.kept}
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

// plan is what a compaction replaces, made while the body of the request was there.
type plan struct {
	from, to       int
	epoch          int
	last           wire.Hash
	messages       []abi.Message
	count          int
	removed, kept  int64
	tokens         int64
	build          func(text string) lane.Swap
	identity       abi.RunIdentity
	threshold, win int64
}

// planner returns a function that plans a compaction, which keeps no more of the request than that takes.
func (x *exchange) planner() func(tokens int64) *plan {
	c := x.s.cfg.Compaction
	if c == nil || x.ln == nil || x.why != "" || x.req == nil || x.req.Fixed != "" || x.req.Text {
		return nil
	}
	x.ln.Lock()
	defer x.ln.Unlock()
	if x.ln.Usage.Prompt() < c.Policy.ThresholdTokens/3 || len(x.ln.Hashes) != x.items {
		return nil // it is far away, and the body need not be kept
	}
	r, epoch, hashes, messages := x.req, x.ln.Epoch, x.ln.Hashes, slices.Clone(x.ln.Messages)
	return func(int64) *plan {
		if epoch != x.ln.Epoch {
			return nil
		}
		ratio := x.attach().account.Ratio
		weigh := func(i int) int64 { return int64(float64(r.Items[i].To-r.Items[i].From) * ratio) }
		head, places := cuts(r, x.ln.State)
		cut, turn := choose(r, places, head, c.Policy.KeepRecentTokens, weigh)
		if cut <= head || cut > len(hashes) || x.ln.Swap != nil && cut <= x.ln.Swap.To {
			return nil
		}
		p := &plan{from: head, to: cut, epoch: x.ln.Epoch, last: hashes[cut-1], messages: sourceOf(messages, head, cut), count: cut - head}
		for i := head; i < cut; i++ {
			p.removed += weigh(i)
		}
		for i := cut; i < len(r.Items); i++ {
			p.kept += weigh(i)
		}
		var names []string
		if x.s.log != nil && len(r.Tools) > 0 {
			names = handles(x.ln.Epoch, head, cut)
		}
		p.identity, p.threshold, p.win = x.identity(), c.Policy.ThresholdTokens, x.s.window()
		p.build = func(text string) lane.Swap {
			item, plain := standIn(r, head, cut, turn, standInText(text, cut-head, names))
			return lane.Swap{
				From: head, To: cut, Item: item, Plain: plain, Handles: names, Tokens: int64(float64(len(item)) * ratio), Removed: p.removed,
			}
		}
		return p
	}
}

// compact makes a summary of originals, in the background.
func (s *Server) compact(ln *lane.Lane, a *attached, state *phases.State, p *plan) {
	ready, err := s.summarize(a, state, p)
	ln.Lock()
	defer ln.Unlock()
	a.working = false
	if err != nil {
		a.failed++
		a.waiting = s.cfg.Now().Add(min(time.Duration(a.failed*a.failed)*10*time.Second, time.Hour))
		s.stats.compactionsFailed.Add(1)
		s.cfg.Logger.WarnContext(s.ctx, "compaction_failed", "lane", ln.ID, "error", err)
		return
	}
	a.failed = 0
	a.ready = ready
}

func (s *Server) summarize(_ *attached, state *phases.State, p *plan) (*summary, error) {
	c := s.cfg.Compaction
	focus := ""
	id := p.identity.RunID + "-" + p.identity.ThreadID
	if rt := s.cfg.Runtime; rt != nil && len(rt.Order(abi.BeforeCompaction)) > 0 {
		out, err := rt.Fire(s.ctx, state, phases.Frame{
			Phase: abi.BeforeCompaction, Run: p.identity, Messages: p.messages,
			Compaction: &abi.Compaction{ID: id, Messages: p.count, RangeTokens: p.removed, ThresholdTokens: p.threshold, WindowTokens: p.win},
		})
		switch {
		case err != nil:
			return nil, err
		case out.Veto != nil:
			return nil, &vetoError{out.Veto.By, out.Veto.Detail}
		}
		focus = out.Focus
	}
	// The two last messages are what the policy keeps, so that all before them is summarized.
	list := append(slices.Clip(p.messages),
		abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("(continues)")}},
		abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("(continues)")}})
	policy := c.Policy
	policy.Mode, policy.KeepRecentMessages = compaction.SafeFrontier, 2
	out, err := compaction.Compact(s.ctx, list, compaction.Options{
		Policy: policy, Summarizer: c.Summarizer, Timeout: c.Timeout, Focus: focus, ThreadID: p.identity.ThreadID,
	})
	if err != nil {
		return nil, err
	}
	text := ""
	if out.From < len(out.Messages) {
		text = out.Messages[out.From].Text()
	}
	return &summary{swap: p.build(text), epoch: p.epoch, last: p.last, id: id, tokens: p.tokens}, nil
}

// vetoError is a plugin that does not want a compaction.
type vetoError struct{ by, detail string }

// Error implements error.
func (e *vetoError) Error() string { return "plugin " + e.by + " vetoes the compaction: " + e.detail }

// overflow puts a compaction in that is ready when the provider refuses a prompt as too long, and asks once more.
func (x *exchange) overflow(ctx context.Context, resp *http.Response) *http.Response {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	text := string(body)
	if err != nil || !strings.Contains(text, "prompt is too long") && !strings.Contains(text, "context_length_exceeded") &&
		!strings.Contains(text, "maximum context length") {
		return resp
	}
	x.s.stats.overflows.Add(1)
	x.ln.Lock()
	a := x.attach()
	s := a.ready
	ok := s != nil && x.req != nil && x.fits(s)
	if ok {
		x.put(ctx, a, s)
		x.offer()
		x.body, x.acted = wire.Apply(x.req.Body, x.splices(x.req, x.ln.State)), true
		x.save(ctx)
	}
	x.ln.Unlock()
	if !ok {
		return resp
	}
	again, err := x.post(ctx, nil)
	if err != nil {
		return resp
	}
	return again
}

// fallBack sends the original when the provider refuses what the proxy made of it, and takes back what it had made. A
// request that plugins edited stays refused: the original may hold what they took out.
func (x *exchange) fallBack(ctx context.Context, resp *http.Response) *http.Response {
	x.ln.Lock()
	defer x.ln.Unlock()
	if !x.acted || resp.StatusCode != http.StatusBadRequest || len(x.ln.Edits) > 0 || x.attach().override != nil {
		return resp
	}
	x.acted = false
	again, err := x.post(ctx, nil)
	if err != nil || again.StatusCode == http.StatusBadRequest {
		if err == nil {
			_ = again.Body.Close()
		}
		x.acted = true
		return resp
	}
	_ = resp.Body.Close()
	x.s.stats.fellBack.Add(1)
	x.s.cfg.Logger.WarnContext(ctx, "request_fell_back", "lane", x.ln.ID)
	x.ln.Swap, x.ln.Grafts, x.ln.Hidden = nil, nil, nil
	x.ln.Epoch++
	x.hidden, x.sent = nil, x.original
	x.save(ctx)
	return again
}

// count makes a request that only counts like the ones of its lane. It changes nothing.
func (x *exchange) count(ctx context.Context) {
	if x.why != "" || x.req.Fixed != "" || x.id.kind == lane.Side && len(x.req.Items) < 2 {
		return
	}
	x.id.kind = lane.Main
	ln, change := x.s.lanes.Find(ctx, x.key(), x.req, true)
	if ln == nil {
		return
	}
	defer ln.Unlock()
	if change == lane.New || change == lane.Reset || change == lane.Fork {
		return
	}
	if splices := x.splices(x.req, ln.State); len(splices) > 0 {
		x.body, x.acted = wire.Apply(x.req.Body, splices), true
		x.s.stats.counted.Add(1)
	}
}

// billPart accounts for a part of an answer that was continued.
func (x *exchange) billPart(u wire.Usage) {
	if x.ln == nil {
		return
	}
	x.ln.Lock()
	defer x.ln.Unlock()
	r := money.RatesOf(x.proto, x.model)
	x.attach().account.Continued(u, r.Units(u), x.s.cfg.Price(x.model))
}
