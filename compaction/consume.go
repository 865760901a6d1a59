package compaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Consume applies a notice that is about a compaction of the thread, and reports
// whether it was: then nobody else needs to see it. The notice must name the
// reservation under way; one that names another changes nothing.
func (c *Compactor) Consume(id string, log []abi.Message, n abi.Notice) bool {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch n.Kind {
	case abi.NoticeCustom:
		if n.EventType != EventTypeCompacted && n.EventType != EventTypeFailed {
			return false
		}
	case abi.NoticeCompleted, abi.NoticeFailed, abi.NoticeCancelled:
		return c.ended(t, id, n)
	default:
		return false
	}
	payload, _ := n.Payload.(map[string]any)
	f := t.flight
	if f == nil || text(payload, "reservation") != f.id {
		c.observe(id, Event{Kind: EventStale, TaskID: n.TaskID, Reason: "the result belongs to no compaction under way"})
		return true
	}
	if n.EventType == EventTypeFailed {
		c.fail(t, id, f, orUnknown(text(payload, "error")))
		return true
	}
	c.swap(t, id, log, f, payload)
	return true
}

// ended takes the end of a compaction's task. Normally its result came before;
// if not, the task died and the reservation is given back.
func (c *Compactor) ended(t *thread, id string, n abi.Notice) bool {
	if f := t.flight; f != nil && f.task != "" && f.task == n.TaskID {
		c.fail(t, id, f, "the task ended without a result: "+orUnknown(n.Error))
		return true
	}
	return slices.Contains(t.recent, n.TaskID)
}

func text(payload map[string]any, key string) string {
	s, _ := payload[key].(string)
	return s
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown error"
	}
	return s
}

// fail gives the reservation back and counts the failure.
func (c *Compactor) fail(t *thread, id string, f *flight, reason string) {
	t.flight = nil
	t.failures++
	t.lastFail = c.cfg.Now()
	c.observe(id, Event{
		Kind: EventFailed, TaskID: f.task, Policy: c.cfg.PolicyName, PreTokens: f.before, Reason: reason,
		StepsMeanwhile: f.steps, Duration: c.cfg.Now().Sub(f.started),
	})
}

// swap puts a summary in place, if it is good enough.
func (c *Compactor) swap(t *thread, id string, log []abi.Message, f *flight, payload map[string]any) {
	t.flight = nil
	now := c.cfg.Now()
	summary := text(payload, "summary")
	e := Event{
		TaskID: f.task, Policy: c.cfg.PolicyName, FromID: f.rng.FromID, ToID: f.rng.ToID, Messages: len(f.source),
		StepsMeanwhile: f.steps, Duration: now.Sub(f.started),
	}
	quality := c.scorer.Score(f.source, f.rng.PreviousSummary, summary)
	e.Quality = &quality
	m := Marker{
		ID: c.cfg.NewID(), ThreadID: id, FromID: f.rng.FromID, ToID: f.rng.ToID, Summary: summary, At: now,
		TaskID: f.task, Policy: c.cfg.PolicyName, Quality: quality,
		ReadFiles: f.rng.ReadFiles, ModifiedFiles: f.rng.ModifiedFiles,
	}
	if prev := t.latest(); prev != nil {
		m.FromID = prev.FromID
	}
	before, after := View(log, t.latest()), View(log, &m)
	m.PreTokens, m.PostTokens = t.tokens(before), t.tokens(after)
	e.PreTokens, e.PostTokens, e.ViewMessages = m.PreTokens, m.PostTokens, len(after)
	if reason := c.refuse(t, log, f, payload, &m); reason != "" {
		t.failures++
		t.lastFail = now
		e.Kind, e.Reason = EventRefused, reason
		c.observe(id, e)
		return
	}
	t.markers = append(t.markers, m)
	if len(t.markers) > maxMarkers {
		t.markers = slices.Delete(t.markers, 0, 1)
	}
	t.total++
	t.attempts, t.failures = 0, 0
	e.Kind = EventSwapped
	c.observe(id, e)
}

// refuse is the quality gate. It returns why a summary must not be swapped in.
func (c *Compactor) refuse(t *thread, log []abi.Message, f *flight, payload map[string]any, m *Marker) string {
	p := c.cfg.Policy
	latest := ""
	if l := t.latest(); l != nil {
		latest = l.ID
	}
	switch from, to := text(payload, "from_id"), text(payload, "to_id"); {
	case strings.TrimSpace(m.Summary) == "":
		return "the summary is empty"
	case latest != f.marker:
		return "another compaction was swapped in or undone meanwhile"
	case indexOf(log, f.rng.FromID) < 0 || indexOf(log, f.rng.ToID) < 0:
		return "the log does not hold the range any more"
	case from != "" && from != f.rng.FromID || to != "" && to != f.rng.ToID:
		return fmt.Sprintf("the summary claims to cover %.40q to %.40q, which was not asked for", from, to)
	case m.Quality.Savings < p.MinSavingsRatio:
		return fmt.Sprintf("min_savings_ratio: it saves %.0f %%, at least %.0f %% are wanted", 100*m.Quality.Savings, 100*p.MinSavingsRatio)
	case m.PostTokens >= m.PreTokens:
		return fmt.Sprintf("the view would grow from %d to %d tokens", m.PreTokens, m.PostTokens)
	case m.Quality.Overall < p.MinSurvival:
		return fmt.Sprintf("min_survival: %.0f %% survive, at least %.0f %% are wanted", 100*m.Quality.Overall, 100*p.MinSurvival)
	}
	return ""
}
