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
	ours := f != nil && (f.task == "" || f.task == n.TaskID)
	switch {
	case ours && text(payload, "reservation") == f.id:
	case ours && f.task != "":
		c.fail(t, id, f, "the task sent something that is no result")
		return true
	default:
		c.observe(id, Event{Kind: EventStale, TaskID: n.TaskID, Reason: "the result belongs to no compaction under way"})
		return true
	}
	c.started(t, id, f, n.TaskID)
	if n.EventType == EventTypeFailed {
		c.fail(t, id, f, orUnknown(text(payload, "error")))
		return true
	}
	t.index.read(log)
	c.swap(t, id, log, f, payload)
	return true
}

// maxEarly bounds the tasks that may end while one is being spawned.
const maxEarly = 64

// ended takes the end of a compaction's task. Normally its result came before;
// if not, the task died and the reservation is given back.
func (c *Compactor) ended(t *thread, id string, n abi.Notice) bool {
	f := t.flight
	switch {
	case f != nil && f.task != "" && f.task == n.TaskID:
		c.fail(t, id, f, "the task ended without a result: "+orUnknown(n.Error))
		return true
	case f != nil && f.task == "" && len(t.early) < maxEarly:
		// It may be the task that is being spawned.
		t.early[n.TaskID] = orUnknown(n.Error)
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
	m := Marker{
		ID: c.cfg.NewID(), ThreadID: id, FromID: f.rng.FromID, ToID: f.rng.ToID, Summary: text(payload, "summary"), At: now,
		TaskID: f.task, Policy: c.cfg.PolicyName, ReadFiles: f.rng.ReadFiles, ModifiedFiles: f.rng.ModifiedFiles,
	}
	e := Event{
		Kind: EventRefused, TaskID: f.task, Policy: c.cfg.PolicyName, FromID: f.rng.FromID, ToID: f.rng.ToID,
		Messages: len(f.source), StepsMeanwhile: f.steps, Duration: now.Sub(f.started),
	}
	// Whoever undid a compaction made the result useless; that is no failure.
	if e.Reason = t.outdated(f); e.Reason != "" {
		c.observe(id, e)
		return
	}
	policy, said := f.notes.read()
	if policy != "" {
		m.Policy, e.Policy = policy, policy
	}
	if prev := t.latest(); prev != nil && f.rng.PreviousSummary != nil {
		m.FromID = prev.FromID
	}
	m.Quality = c.quality(f, m.Summary)
	m.PreTokens, m.PostTokens = t.bill.apply(t.size(t.latest())), t.bill.apply(t.size(&m))
	e.PreTokens, e.PostTokens, e.Quality = m.PreTokens, m.PostTokens, &m.Quality
	if cover, ok := t.index.covered(&m); ok {
		e.ViewMessages = cover.from + 1 + len(cover.keep) + len(log) - cover.to - 1
	}
	if e.Reason = c.refuse(f, payload, &m); e.Reason != "" {
		t.failures++
		t.lastFail = now
		c.observe(id, e)
		return
	}
	t.markers = append(t.markers, m)
	if len(t.markers) > maxMarkers+1 {
		t.markers, t.forgot = slices.Delete(t.markers, 0, 1), true
	}
	t.total++
	t.attempts, t.failures = 0, 0
	e.Kind, e.Reason = EventSwapped, said
	c.observe(id, e)
}

// outdated says why a result no longer fits the thread, if it does not.
func (t *thread) outdated(f *flight) string {
	latest := ""
	if l := t.latest(); l != nil {
		latest = l.ID
	}
	switch {
	case latest != f.marker:
		return "another compaction was swapped in or undone meanwhile"
	case t.index.at(f.rng.FromID) != f.rng.From || t.index.at(f.rng.ToID) != f.rng.To:
		return "the log does not hold the range any more"
	}
	return ""
}

// quality is what was measured where the summarizer ran, or is measured now.
func (c *Compactor) quality(f *flight, summary string) Quality {
	if f.scored != nil && f.summary == summary {
		return *f.scored
	}
	return c.scorer.Score(f.source, f.rng.PreviousSummary, summary)
}

// refuse is the quality gate. It returns why a summary must not be swapped in.
func (c *Compactor) refuse(f *flight, payload map[string]any, m *Marker) string {
	p := c.cfg.Policy
	switch from, to := text(payload, "from_id"), text(payload, "to_id"); {
	case strings.TrimSpace(m.Summary) == "":
		return "the summary is empty"
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
