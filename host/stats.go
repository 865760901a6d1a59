package host

import (
	"errors"
	"sync"
	"time"
)

// Info says what a module is. It does not change.
type Info struct {
	// SHA256 of the binary in hexadecimal.
	SHA256 string
	// Size of the binary in bytes.
	Size int
	// Compile is how long the compilation took, Cached whether the cache folder
	// probably had it.
	Compile time.Duration
	Cached  bool
	Engine  EngineName
	// Exports that can be called, in the order of the binary.
	Exports []string
}

// Stats counts what happened to a module since it was loaded.
type Stats struct {
	// Calls that began, and those of them that did not succeed.
	Calls, Failures int64
	// Refusals are failures with a [GuestError], Traps those with a [TrapError].
	Refusals, Traps int64
	// Replaced counts instances that were not used again: trapped, stopped, or
	// grown too large.
	Replaced int64
	// Instances alive now, idle ones included.
	Instances int64
	// LogsDropped counts log messages above Limits.LogBytes, and those without
	// the grant.
	LogsDropped int64
	// Time spent in instances, all calls together.
	Time time.Duration
}

// counters collects Stats.
type counters struct {
	mu sync.Mutex
	s  Stats
}

func (c *counters) call(took time.Duration, dropped int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Calls++
	c.s.Time += took
	c.s.LogsDropped += dropped
	if err == nil {
		return
	}
	c.s.Failures++
	var refusal *GuestError
	var trap *TrapError
	switch {
	case errors.As(err, &refusal):
		c.s.Refusals++
	case errors.As(err, &trap):
		c.s.Traps++
	}
}

func (c *counters) instance(alive, replaced int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Instances += alive
	c.s.Replaced += replaced
}

func (c *counters) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}
