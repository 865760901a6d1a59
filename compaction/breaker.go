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

// open says whether the fallback writes now. When the time is over the summarizer
// gets one try.
func (c *Compactor) open(t *thread) bool {
	most := c.cfg.Policy.BreakerFailures
	return most > 0 && t.state.Broken >= most && c.cfg.Now().Before(t.state.OpenUntil)
}

// broke counts a failure of the summarizer, and says whether that opens the breaker.
func (c *Compactor) broke(s *State, f *flight, permanent bool) bool {
	most := c.cfg.Policy.BreakerFailures
	if !f.main || most < 0 {
		return false
	}
	s.Broken++
	if permanent {
		s.Broken = max(s.Broken, most)
	}
	if s.Broken < most {
		return false
	}
	s.OpenUntil = c.cfg.Now().Add(min(minOpen<<min(s.Broken-most, 16), maxOpen))
	return true
}

func (c *Compactor) opened(t *thread, opened bool) {
	if opened {
		c.observe(t, Event{Kind: EventBreaker, Policy: nameOf(c.cfg.Fallback), Reason: fmt.Sprintf(
			"the summarizer failed %d times in a row; until %s the fallback writes", t.state.Broken, t.state.OpenUntil.UTC().Format(time.RFC3339))})
	}
}

// nameOf is what a summarizer calls itself.
func nameOf(s Summarizer) string {
	if named, ok := s.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "fallback"
}

// permanent says whether an error will be the same next time. llm.Error and others
// say so by a method.
func permanent(err error) bool {
	var r interface{ Retryable() bool }
	return errors.As(err, &r) && !r.Retryable()
}
