package compaction

import (
	"math"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// question plans, and gathers the facts that the admission policy weighs.
func (c *Compactor) question(t *thread, f *flight, log []abi.Message, now time.Time) *abi.AdmitRequest {
	if s := &t.state; s.Attempts > 0 && now.Sub(s.LastStart) >= c.conf().Quota.Forget {
		s.Attempts, f.Attempt = 0, 1
	}
	request := c.sample(t, now)
	if rng, ok := t.index.plan(log, t.latest(), c.conf().Policy, t.bill.apply); ok && c.budget(rng, f.Before) > 0 {
		f.Range, f.log = *rng, log[:rng.To+1]
		f.BoundaryID, f.Continues = rng.ToID, rng.PreviousSummary != nil
		request.TokensBefore, request.RangeTokens = &f.Before, rng.Tokens
		request.Cost = c.estimate(t, f)
	}
	return request
}

// sample is what a decision depends on, but for what is to be compacted.
func (c *Compactor) sample(t *thread, now time.Time) *abi.AdmitRequest {
	s, q := &t.state, &c.conf().Quota
	r := &abi.AdmitRequest{
		ThreadID: t.id, NowMS: now.UnixMilli(), ThresholdTokens: c.conf().Policy.ThresholdTokens,
		WindowTokens: c.conf().Policy.WindowTokens, AttemptCount: int64(s.Attempts),
		MaxAttempts: int64(q.MaxAttempts), CooldownMS: q.Cooldown.Milliseconds(),
		Signals: c.conf().Signals(), Requested: t.requested, Failures: int64(s.Failures), Cache: t.cache,
	}
	if !s.LastStart.IsZero() {
		r.LastStartMS = s.LastStart.UnixMilli()
		r.CooldownRemainingMS = remaining(s.LastStart.Add(q.Cooldown), now)
	}
	if s.Failures > 0 {
		r.BackoffRemainingMS = remaining(s.LastFail.Add(min(time.Second<<min(s.Failures-1, 16), maxBackoff)), now)
	}
	r.CooldownRemainingMS = max(r.CooldownRemainingMS, r.BackoffRemainingMS)
	if c.held(t, now) {
		r.CooldownRemainingMS = max(r.CooldownRemainingMS, remaining(s.NotBefore, now))
	}
	if signal := c.conf().Limiter.look(now); signal.Saturated || r.Signals.Queue == nil {
		r.Signals.Queue = &signal
	}
	return r
}

// remaining is how long it is until then, in milliseconds, rounded up.
func remaining(until, now time.Time) int64 {
	if !until.After(now) {
		return 0
	}
	return (until.Sub(now) + time.Millisecond - 1).Milliseconds()
}

// postpone keeps a version of the policy from being asked for a while. Another one is asked at once.
func (c *Compactor) postpone(t *thread, wait time.Duration, version string) {
	t.state.NotBefore, t.state.NotBeforeVersion = c.conf().Now().Add(wait), version
}

func (c *Compactor) held(t *thread, now time.Time) bool {
	return t.state.NotBefore.After(now) && t.state.NotBeforeVersion == versionOf(c.conf().Admitter)
}

// estimate is what the compaction costs and saves, with the longest summary that would be accepted. The caller holds
// the thread.
func (c *Compactor) estimate(t *thread, f *flight) *abi.CompactionCost {
	out := &abi.CompactionCost{SummaryTokens: c.budget(&f.Range, f.Before)}
	next := Marker{FromID: f.Range.FromID, ToID: f.Range.ToID}
	if m := t.latest(); m != nil {
		out.AfterTokens = m.PostTokens
		if f.Continues {
			next.FromID = m.FromID
		}
	}
	cover, _ := t.index.covered(&next)
	after := t.bill.apply(t.index.size(cover, 0)) + out.SummaryTokens
	out.SavedTokens = max(0, f.Before-after)
	out.RewriteTokens = max(0, after-t.bill.apply(t.index.tokens(0, cover.from)))
	if t.cache != nil && t.cache.PromptTokens > 0 {
		share := float64(min(t.cache.ReadTokens, t.cache.PromptTokens)) / float64(t.cache.PromptTokens)
		n, saved := out.RewriteTokens, out.SavedTokens
		anew := abi.Usage{PromptTokens: n}
		if t.cache.WrittenTokens > 0 {
			anew.CacheCreationTokens = n
		}
		out.RewriteMicros = max(0, c.micros(t, anew)-c.micros(t, abi.Usage{PromptTokens: n, CacheReadTokens: n}))
		out.SavedMicros = c.micros(t, abi.Usage{PromptTokens: saved, CacheReadTokens: int64(share * float64(saved))})
	}
	return out
}

// micros is what a usage costs with the model of the latest inference, 0 when that is not known.
func (c *Compactor) micros(t *thread, u abi.Usage) int64 {
	const most = 1 << 53
	return int64(min(max(0, math.Round(c.conf().Cost(t.cache.Model, u)*1e6)), most))
}

// Billed learns what the thread's latest inference used, and of which model.
func (c *Compactor) Billed(id, model string, u abi.Usage) {
	t := c.hold(id)
	defer t.mu.Unlock()
	t.cache = &abi.CacheUse{
		AtMS: c.conf().Now().UnixMilli(), PromptTokens: u.PromptTokens, ReadTokens: u.CacheReadTokens, WrittenTokens: u.CacheCreationTokens, Model: model,
	}
	const many = 10_000
	if fresh := c.micros(t, abi.Usage{PromptTokens: many}); fresh > 0 {
		t.cache.ReadPerMille = c.micros(t, abi.Usage{PromptTokens: many, CacheReadTokens: many}) * 1000 / fresh
		t.cache.WritePerMille = c.micros(t, abi.Usage{PromptTokens: many, CacheCreationTokens: many}) * 1000 / fresh
	}
}
