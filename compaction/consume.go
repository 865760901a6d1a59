package compaction

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Consume takes the result of a compaction of the thread whose task has ended, and reports whether n is
// about one. The notification has only the id of the task: the result is in the compactor, or
// in the store if another process made it.
func (c *Compactor) Consume(id string, log []abi.Message, n abi.Notice) bool {
	if n.Kind != abi.NoticeCompleted && n.Kind != abi.NoticeFailed && n.Kind != abi.NoticeCancelled {
		return false
	}
	t := c.use(id)
	defer t.mu.Unlock()
	f := t.flight
	switch {
	case f == nil || f.ID != n.TaskID:
		return slices.Contains(t.recent, n.TaskID)
	case f.Result != nil:
		c.follow(t, log)
		c.swap(t, log, f)
	case f.failed != nil:
		c.fail(t, f, clip(f.failed.Error()), permanent(f.failed))
	default:
		c.fail(t, f, "the task ended without a result: "+orUnknown(n.Error), false)
	}
	return true
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown error"
	}
	return s
}

// fail gives the reservation back, ends the summarizer, and counts the failure.
func (c *Compactor) fail(t *thread, f *flight, reason string, permanent bool) {
	c.drop(t, f, reason)
	now := c.conf().Now()
	opened := false
	c.clear(t, reason, func(s *State) {
		s.Failures++
		s.LastFail = now
		opened = c.broke(s, f, permanent)
	})
	e := c.end(f, EventFailed)
	e.PreTokens, e.Reason, e.Permanent = f.Before, reason, permanent
	c.ending(t, f, &e)
	c.observe(t, e)
	c.opened(t, f, opened, reason)
}

// drop forgets a flight and cancels its summarizer.
func (c *Compactor) drop(t *thread, f *flight, reason string) {
	t.flight = nil
	f.leave()
	if f.cancel != nil {
		f.cancel(fmt.Errorf("compaction: given up: %s", clip(reason)))
	}
}

// end is an event about the end of a flight.
func (c *Compactor) end(f *flight, kind EventKind) Event {
	return Event{
		Kind: kind, TaskID: f.ID, AttemptID: f.ID, Attempt: f.Attempt, Policy: f.Policy,
		FromID: f.Range.FromID, ToID: f.Range.ToID, Messages: f.Range.To - f.Range.From + 1,
		StepsMeanwhile: f.steps, Duration: c.conf().Now().Sub(f.started),
	}
}

// swap puts a summary in place, if it is good enough and the thread is still what
// it was written for.
func (c *Compactor) swap(t *thread, log []abi.Message, f *flight) {
	e := c.end(f, EventRefused)
	// An undo makes the result useless; that is no failure.
	if e.Reason = t.outdated(f); e.Reason != "" {
		c.drop(t, f, e.Reason)
		c.clear(t, e.Reason, func(*State) {})
		c.ending(t, f, &e)
		c.observe(t, e)
		return
	}
	m := c.marker(t, f)
	e.Policy = m.Policy
	e.ViewMessages, e.Masked = len(log), len(f.Result.Masks)
	if cover, ok := t.index.covered(&m); ok {
		m.Quality.Pins = t.index.pins(cover)
		m.Masks = t.index.left(m.Masks, cover)
		e.ViewMessages = cover.from + 1 + len(cover.keep) + len(log) - cover.to - 1
	}
	m.PreTokens = t.bill.apply(t.size(log))
	next := t.index.show(log, &m)
	m.PostTokens = t.bill.apply(t.index.weight(&m, next))
	e.PreTokens, e.PostTokens, e.Quality = m.PreTokens, m.PostTokens, &m.Quality
	if e.Reason = c.refuse(f, &m); e.Reason != "" {
		opened := false
		c.refused(f, e.Reason)
		c.drop(t, f, e.Reason)
		c.clear(t, e.Reason, func(s *State) {
			s.Failures++
			s.LastFail = m.At
			opened = c.broke(s, f, false)
		})
		c.ending(t, f, &e)
		c.observe(t, e)
		c.opened(t, f, opened, e.Reason)
		return
	}
	if c.place(t, f, m) {
		t.summary = next
		e.Kind, e.Reason = EventSwapped, f.Result.Note
		c.ending(t, f, &e)
		c.observe(t, e)
	}
}

func (c *Compactor) marker(t *thread, f *flight) Marker {
	m := Marker{
		ID: f.ID, ThreadID: t.id, FromID: f.Range.FromID, ToID: f.Range.ToID, Summary: f.Result.Summary, At: c.conf().Now(),
		TaskID: f.ID, Policy: cmp.Or(f.Result.Policy, f.Policy), Quality: f.Result.Quality, ReadFiles: f.Range.ReadFiles, ModifiedFiles: f.Range.ModifiedFiles,
	}
	prev := t.latest()
	if prev == nil {
		prev = &Marker{}
	}
	m.Masks = merged(prev.Masks, f.Result.Masks)
	switch {
	case !f.Continues:
	case len(f.Result.Masks) > 0:
		m.FromID, m.ToID, m.Summary, m.ReadFiles, m.ModifiedFiles = prev.FromID, prev.ToID, prev.Summary, prev.ReadFiles, prev.ModifiedFiles
	default:
		m.FromID = prev.FromID
	}
	return m
}

// maxStoreRetries is how often a swap is tried that the store does not take.
const maxStoreRetries = 8

// place writes the marker into the store. When the store fails, the result waits
// and is tried again; when another process has taken the thread over, it is stale.
// A marker has the id of its reservation, so that none is placed twice.
func (c *Compactor) place(t *thread, f *flight, m Marker) bool {
	there := func(s *State) bool {
		return slices.ContainsFunc(s.Markers, func(o Marker) bool { return o.ID == m.ID })
	}
	err := c.commit(t, func(s *State) bool { return holds(f.ID)(s) || there(s) }, func(s *State) {
		if there(s) {
			return
		}
		s.InFlight = nil
		s.Markers = append(s.Markers, m)
		if len(s.Markers) > maxMarkers+1 {
			s.Markers, s.Forgot = slices.Delete(s.Markers, 0, 1), true
		}
		s.Total++
		s.Attempts, s.Failures = 0, 0
		if f.main {
			s.Broken, s.BrokenVersion, s.OpenUntil = 0, "", time.Time{}
		}
	})
	if err == nil {
		c.drop(t, f, "done")
		return true
	}
	e := c.end(f, EventStale)
	e.Reason = fmt.Sprintf("another process has taken the thread over: %v", err)
	if !errors.Is(err, ErrConflict) {
		now := c.conf().Now()
		f.retries++
		f.retryAt, f.deadline = now.Add(min(storePause<<min(f.retries, 6), time.Minute)), now
		if f.retries < maxStoreRetries {
			e.Kind, e.Reason = EventFailed, fmt.Sprintf("the summary could not be stored, and is tried again: %v", err)
			c.observe(t, e)
			return false
		}
		c.fail(t, f, fmt.Sprintf("the summary could not be stored: %v", err), false)
		return false
	}
	c.drop(t, f, e.Reason)
	c.observe(t, e)
	return false
}

// outdated returns why a result no longer fits the thread, if it does not.
func (t *thread) outdated(f *flight) string {
	latest := ""
	if l := t.latest(); l != nil {
		latest = l.ID
	}
	switch {
	case latest != f.Marker:
		return "another compaction was swapped in or undone meanwhile"
	case t.index.at(f.Range.FromID) != f.Range.From || t.index.at(f.Range.ToID) != f.Range.To:
		return "the log does not hold the range any more"
	}
	return ""
}

// refuse is the quality gate. It returns why a summary must not be swapped in.
func (c *Compactor) refuse(f *flight, m *Marker) string {
	p := c.conf().Policy
	switch from, to := f.Result.FromID, f.Result.ToID; {
	case strings.TrimSpace(f.Result.Summary) == "" && len(f.Result.Masks) == 0:
		return "the summary is empty"
	case from != "" && from != f.Range.FromID || to != "" && to != f.Range.ToID:
		return fmt.Sprintf("the summary claims to cover %.40q to %.40q, which was not asked for", from, to)
	case m.PostTokens >= m.PreTokens:
		return fmt.Sprintf("min_savings_ratio: the view would grow from %d to %d tokens", m.PreTokens, m.PostTokens)
	case float64(m.PreTokens-m.PostTokens) < p.leastSaved(f.Before):
		return fmt.Sprintf("min_savings_ratio: it saves %d of %d tokens of the view, at least %.0f are wanted", m.PreTokens-m.PostTokens, f.Before, p.leastSaved(f.Before))
	case m.Quality.Overall < p.MinSurvival:
		return fmt.Sprintf("min_survival: %.0f %% survive, at least %.0f %% are wanted", 100*m.Quality.Overall, 100*p.MinSurvival)
	}
	for _, b := range p.Bars.list(&m.Quality) {
		if b.got.share() < b.least {
			return fmt.Sprintf("bars.%s: %d of %d survive, at least %.0f %% are wanted", b.name, b.got.Kept, b.got.Total, 100*b.least)
		}
	}
	return ""
}
