package proxy

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/thread"
)

// compact makes a summary of originals, in the background.
func (x *exchange) compact(a *attached, state *phases.State, p *plan, spent *spending) {
	s, ln := x.s, x.ln
	ready, err := s.summarize(context.WithValue(s.ctx, spendingKey{}, spent), state, p)
	ln.Lock()
	defer ln.Unlock()
	if rate := x.bill(spent) / float64(p.removed); p.removed > 0 {
		s.billed.Store(&rate)
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
