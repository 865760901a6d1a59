package compaction

import (
	"context"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds on what is reported to plugins.
const (
	maxEnded = 8        // compactions of a thread that wait to be reported
	maxLost  = 32       // facts
	maxFact  = 256      // bytes of one
	maxFocus = 16 << 10 // bytes
)

// ConsiderWith is [Compactor.Consider], and asks before a compaction that was admitted
// begins. The focus that ask returns is added to the one that was requested; a veto that
// is not empty keeps the compaction from starting, and is recorded as a decision for
// abi.ReasonVetoed. It may be asked again at the next step.
func (c *Compactor) ConsiderWith(ctx context.Context, id string, log []abi.Message, ask func(context.Context, *abi.Compaction) (focus, veto string)) bool {
	t, q := c.reserve(id, log)
	if q == nil {
		return false
	}
	decision, detail, retry := c.admit(ctx, q)
	f := q.flight
	if f == nil {
		c.stillPending(t, decision, detail)
		return false
	}
	if decision.Allowed && !c.seat(t, f) {
		decision.Allowed, decision.Reason = false, abi.ReasonQueueSaturated
	}
	if decision.Allowed && ask != nil {
		focus, veto := ask(ctx, c.offer(t, f))
		if veto != "" {
			decision.Allowed, decision.Reason, detail = false, abi.ReasonVetoed, veto
		} else {
			t.addFocus(focus)
		}
	}
	if !c.decided(t, q, decision, detail, retry) {
		return false
	}
	return c.launch(ctx, t, f)
}

// stillPending records what was decided while another compaction has the thread's place.
func (c *Compactor) stillPending(t *thread, d *AdmissionDecision, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.tell(t, t.underWay(), d, detail)
}

// seat takes a place of the limiter, and reports whether there was one.
func (c *Compactor) seat(t *thread, f *flight) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flight != f {
		return true // the reservation is lost, which is found out later
	}
	now := c.conf().Now()
	f.release = c.conf().Limiter.take(now, now.Add(2*queueFactor*c.conf().Quota.Timeout))
	return f.release != nil
}

// offer describes a compaction that is about to start.
func (c *Compactor) offer(t *thread, f *flight) *abi.Compaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &abi.Compaction{
		ID: f.ID, Policy: f.Policy, FromID: f.Range.FromID, ToID: f.Range.ToID, Messages: len(f.source()),
		TokensBefore: f.Before, RangeTokens: f.Range.Tokens, Focus: t.focus,
		ThresholdTokens: c.conf().Policy.ThresholdTokens, WindowTokens: c.conf().Policy.WindowTokens,
	}
}

func (t *thread) addFocus(focus string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if focus == "" || strings.Contains(t.focus, focus) {
		return
	}
	if t.focus != "" {
		focus = t.focus + "\n" + focus
	}
	t.focus = strings.ToValidUTF8(focus[:min(len(focus), maxFocus)], "")
}

// Ended returns the compactions of a thread that ended since Ended was last called, oldest
// first, and at most the newest 8. They are kept in memory only.
func (c *Compactor) Ended(id string) []abi.Compaction {
	t := c.hold(id)
	defer t.mu.Unlock()
	out := t.ended
	t.ended = nil
	return out
}

// ending keeps how a compaction ended until Ended is called.
func (c *Compactor) ending(t *thread, f *flight, e *Event) {
	outcome, known := map[EventKind]abi.CompactionOutcome{
		EventSwapped: abi.CompactionSwapped, EventRefused: abi.CompactionRefused, EventFailed: abi.CompactionFailed,
	}[e.Kind]
	if !known {
		return
	}
	out := abi.Compaction{
		ID: f.ID, Policy: e.Policy, FromID: e.FromID, ToID: e.ToID, Messages: e.Messages,
		TokensBefore: e.PreTokens, TokensAfter: e.PostTokens, RangeTokens: f.Range.Tokens,
		ThresholdTokens: c.conf().Policy.ThresholdTokens, WindowTokens: c.conf().Policy.WindowTokens,
		Outcome: outcome, Reason: e.Reason,
	}
	if f.Result != nil && outcome != abi.CompactionFailed {
		out.Summary = f.Result.Summary
		out.Survival = new(f.Result.Quality.Overall)
		out.Lost = c.scorer.Lost(f.source(), f.Range.PreviousSummary, f.text(f.Result))
	}
	if len(t.ended) == maxEnded {
		t.ended = slices.Clone(t.ended[1:])
	}
	t.ended = append(t.ended, out)
}

// Lost lists facts of a source that its summary does not hold word for word, the first
// 32 of them: what [Scorer.Score] counts, by kind.
func (s *Scorer) Lost(source []abi.Message, previous *string, summary string) []string {
	text := sourceText(source, previous)
	var out []string
	for _, k := range s.kinds {
		for _, item := range frequent(&k, text) {
			if len(out) == maxLost {
				return out
			}
			if !strings.Contains(summary, item) {
				out = append(out, strings.ToValidUTF8(item[:min(len(item), maxFact)], ""))
			}
		}
	}
	return out
}
