package mailbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

const (
	// clockAge is how old a reading of the store's clock may become, clockWait how long another one may take.
	clockAge  = 10 * time.Second
	clockWait = 2 * time.Second
	// clockStep is by how much the wall clock and the monotonic one may differ before the store's is read again: a machine that was
	// asleep. It is also by how much time may stand still rather than move backwards.
	clockStep = time.Second
)

// clock is the time by which a queue counts: the store's, continued by the monotonic clock of this process since the latest reading.
type clock struct {
	local func() time.Time
	store store.Clock // nil if the local clock counts

	// reading is held while the store's clock is read again.
	reading sync.Mutex

	mu sync.Mutex
	// base was the store's time at the moment at, when the local clock showed shown.
	base, at, shown time.Time
	// last is what now returned last.
	last time.Time
}

func newClock(cfg *Config) *clock {
	c := &clock{local: cfg.Now}
	if cfg.Lease.Skew >= 0 {
		c.store, _ = cfg.Store.(store.Clock)
	}
	return c
}

// now returns the time. Before the first reading it is that of the local clock.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return c.local()
	}
	now := c.base.Add(time.Since(c.at))
	if back := c.last.Sub(now); back <= 0 || back > clockStep {
		c.last = now
	}
	return c.last
}

// sync reads the store's clock if the latest reading is too old. An error means that there is none at all.
func (c *clock) sync(ctx context.Context) error {
	known, stale := c.state()
	switch {
	case !stale:
		return nil
	case !known:
		return c.read(ctx)
	case !c.reading.TryLock():
		return nil // another goroutine reads
	}
	defer c.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	_ = c.read(ctx) // the time since the latest reading is known all the same
	return nil
}

// state reports whether the store's clock was read, and whether it is to be read again.
func (c *clock) state() (known, stale bool) {
	if c.store == nil {
		return true, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return false, true
	}
	passed := time.Since(c.at)
	drift := c.local().Round(0).Sub(c.shown) - passed // Round takes the monotonic reading off
	return true, passed > clockAge || drift.Abs() > clockStep
}

// read reads the store's clock. It showed what it returns at some moment between two of this process, so its time is known to within
// the time between them: what was known before is kept as far as it agrees with that.
func (c *clock) read(ctx context.Context) error {
	began := time.Now()
	first, err := c.store.Time(ctx)
	if err != nil {
		return fmt.Errorf("clock of the store: %w", err)
	}
	ended := time.Now()
	took := ended.Sub(began)
	last := first.Add(took)
	c.mu.Lock()
	defer c.mu.Unlock()
	base := first.Add(took / 2)
	if !c.at.IsZero() {
		base = c.base.Add(ended.Sub(c.at))
	}
	if base.Before(first) {
		base = first
	} else if base.After(last) {
		base = last
	}
	c.base, c.at, c.shown = base, ended, c.local().Round(0)
	return nil
}

// ahead is how far the local clock was ahead of the store's at the latest reading; behind if it is negative.
func (q *queue) ahead() time.Duration {
	c := q.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown.Sub(c.base)
}
