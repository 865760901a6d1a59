package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
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
	"github.com/mortise-dev/mortise/thread"
)

// summary is a compaction that waits to be put in.
type summary struct {
	swap  lane.Swap
	epoch int
	// last is the identity of the last item that it replaces.
	last   wire.Hash
	marker compaction.Marker
	bill   float64
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
	x.swapped = true
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

// plan is what a compaction replaces, made while the body of the request was there.
type plan struct {
	from, to       int
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
		ratio := x.ln.Money.Ratio
		weigh := func(i int) int64 { return int64(float64(r.Items[i].To-r.Items[i].From) * ratio) }
		head, places := cuts(r, x.ln.State)
		cut, turn := choose(r, places, head, c.Policy.KeepRecentTokens, weigh)
		if cut <= head || cut > len(hashes) || x.ln.Swap != nil && cut <= x.ln.Swap.To {
			return nil
		}
		p := &plan{from: head, to: cut, epoch: x.ln.Epoch, last: hashes[cut-1], messages: sourceOf(r, x.ln.State, messages, head, cut), count: cut - head, id: rand.Text()}
		p.fromID, p.toID = x.ln.Span(head, cut)
		for i := head; i < cut; i++ {
			p.removed += weigh(i)
		}
		for i := cut; i < len(r.Items); i++ {
			p.kept += weigh(i)
		}
		var names []string
		if x.s.cfg.Store != nil && len(r.Tools) > 0 {
			names = handles(x.ln.Epoch, head, cut)
		}
		p.identity, p.threshold, p.win = x.identity(), c.Policy.ThresholdTokens, x.s.window()
		p.build = func(text string) lane.Swap {
			item, plain := standIn(r, head, cut, turn, standInText(text, cut-head, names))
			return lane.Swap{
				From: head, To: cut, First: p.fromID, Item: item, Plain: plain, Handles: names, Tokens: int64(float64(len(item)) * ratio), Removed: p.removed,
			}
		}
		return p
	}
}

// compact makes a summary of originals, in the background.
func (x *exchange) compact(a *attached, state *phases.State, p *plan, spent *spending) {
	s, ln := x.s, x.ln
	ready, err := s.summarize(context.WithValue(s.ctx, spendingKey{}, spent), state, p)
	ln.Lock()
	defer ln.Unlock()
	if bill := x.bill(spent); p.removed > 0 {
		rate := bill / float64(p.removed)
		s.billed.Store(&rate)
		if ready != nil {
			ready.bill = bill
		}
	}
	a.working = false
	if err != nil {
		x.event(compaction.Event{Kind: compaction.EventFailed, AttemptID: p.id, Reason: err.Error(), FromID: p.fromID, ToID: p.toID})
		x.save(s.ctx)
		a.failed++
		a.waiting = s.cfg.Now().Add(min(time.Duration(a.failed*a.failed)*10*time.Second, time.Hour))
		s.stats.compactionsFailed.Add(1)
		s.cfg.Logger.WarnContext(s.ctx, "compaction_failed", "lane", ln.ID, "error", err)
		return
	}
	a.failed = 0
	a.ready = ready
}

func (s *Server) summarize(ctx context.Context, state *phases.State, p *plan) (*summary, error) {
	c := s.cfg.Compaction
	focus := ""
	if rt := s.cfg.Runtime; rt != nil && len(rt.Order(abi.BeforeCompaction)) > 0 {
		out, err := rt.Fire(ctx, state, phases.Frame{
			Phase: abi.BeforeCompaction, Run: p.identity, Messages: p.messages,
			Compaction: &abi.Compaction{ID: p.id, Messages: p.count, RangeTokens: p.removed, ThresholdTokens: p.threshold, WindowTokens: p.win},
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
	out, err := compaction.Compact(ctx, list, compaction.Options{
		Policy: policy, Summarizer: c.Summarizer, Timeout: c.Timeout, Focus: focus, ThreadID: p.identity.ThreadID,
	})
	if err != nil {
		return nil, err
	}
	text := ""
	if out.From < len(out.Messages) {
		text = out.Messages[out.From].Text()
	}
	marker := compaction.Marker{
		ID: p.id, ThreadID: p.identity.ThreadID, FromID: p.fromID, ToID: p.toID, Summary: untagged(text), Policy: out.Policy, Quality: out.Quality,
	}
	return &summary{swap: p.build(text), epoch: p.epoch, last: p.last, marker: marker, tokens: p.tokens}, nil
}

// untagged is a summary as a marker has it, without the tags of a view.
func untagged(text string) string {
	if _, inner, ok := strings.Cut(text, ">\n"); ok && strings.HasPrefix(text, "<") {
		if i := strings.LastIndex(inner, "\n</"); i >= 0 {
			return inner[:i]
		}
	}
	return text
}

// event notes what happened to a compaction, in the thread and in the record of the run under way.
func (x *exchange) event(e compaction.Event) {
	e.Thread, e.At = x.ln.ID, x.s.cfg.Now()
	x.ln.Events = append(x.ln.Events, e)
	if run := x.ln.Run; run != "" {
		x.record(func(r Records) error { return r.Add(run, thread.Decision{At: e.At, Step: x.ln.Step, Compaction: &e}) })
	}
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
	x.ln.Money.Continued(u, r.Units(u), x.s.cfg.Price(x.model))
}
