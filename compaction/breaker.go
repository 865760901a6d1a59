package compaction

import (
	"errors"
	"fmt"
	"time"
)

// Bounds on how long the breaker stays open.
const (
	minOpen = time.Minute
	maxOpen = time.Hour
)

// Versioned is what a [Summarizer] may have besides Summarize when it can be replaced
// while threads use it. The breaker counts the failures of each version apart, so it
// is closed for a version that has not failed, and it asks for a roll-back before it opens.
type Versioned interface {
	// Version names what takes the requests now, the same in each process.
	Version() string
	// RollBack returns the requests to the version before the named one, and reports
	// whether it did. It does so as long as the named one is on trial. It must not
	// call the Compactor.
	RollBack(version, reason string) bool
}

// Judged is what a [Versioned] summarizer may also implement: it learns which of its summaries the quality gate
// refused, so that a version that loses too much is rolled back before the breaker opens.
type Judged interface {
	// Refused is called with the version that was in use when the compaction started. It must not call the
	// Compactor.
	Refused(version, reason string)
}

// refused passes a refusal on, unless another one wrote in the summarizer's place.
func (c *Compactor) refused(f *flight, reason string) {
	if j, ok := c.conf().Summarizer.(Judged); ok && f.main && f.Result.Note == "" {
		j.Refused(f.version, reason)
	}
}

// version names what summarizes now, empty if there is only one.
func (c *Compactor) version() string { return versionOf(c.conf().Summarizer) }

// versionOf is the version of a policy that has some.
func versionOf(policy any) string {
	if v, ok := policy.(Versioned); ok {
		return v.Version()
	}
	return ""
}

// open reports whether the fallback writes now. When the time is over the summarizer
// gets one try.
func (c *Compactor) open(t *thread) bool {
	most, s := c.conf().Policy.BreakerFailures, &t.state
	return most > 0 && s.Broken >= most && s.BrokenVersion == c.version() && c.conf().Now().Before(s.OpenUntil)
}

// broke counts a failure of the summarizer, and reports whether that opens the breaker. A failure
// of a version that is no longer in use does not count.
func (c *Compactor) broke(s *State, f *flight, permanent bool) bool {
	most := c.conf().Policy.BreakerFailures
	if !f.main || most < 0 || f.version != c.version() {
		return false
	}
	if s.BrokenVersion != f.version {
		s.Broken, s.BrokenVersion, s.OpenUntil = 0, f.version, time.Time{}
	}
	s.Broken++
	if permanent {
		s.Broken = max(s.Broken, most)
	}
	if s.Broken < most {
		return false
	}
	s.OpenUntil = c.conf().Now().Add(min(minOpen<<min(s.Broken-most, 16), maxOpen))
	return true
}

// opened asks for a roll-back where the breaker opens. Without one the fallback writes.
func (c *Compactor) opened(t *thread, f *flight, opened bool, reason string) {
	if !opened {
		return
	}
	failed := fmt.Sprintf("the summarizer failed %s in a row", times(t.state.Broken))
	if v, ok := c.conf().Summarizer.(Versioned); ok && v.RollBack(f.version, clip(failed+": "+reason)) {
		return
	}
	c.observe(t, Event{Kind: EventBreaker, Policy: nameOf(c.conf().Fallback), Reason: fmt.Sprintf(
		"%s; until %s the fallback writes", failed, t.state.OpenUntil.UTC().Format(time.RFC3339))})
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// nameOf is what a summarizer calls itself.
func nameOf(s Summarizer) string {
	if named, ok := s.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "fallback"
}

// permanent reports whether an error will be the same next time. llm.Error and others
// say so by a method.
func permanent(err error) bool {
	var r interface{ Retryable() bool }
	return errors.As(err, &r) && !r.Retryable()
}
