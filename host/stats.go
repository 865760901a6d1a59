package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Info describes what a module is. It does not change.
type Info struct {
	// SHA256 of the binary in hexadecimal.
	SHA256 string `json:"sha256"`
	// Size of the binary in bytes.
	Size int `json:"size"`
	// Compile is how long the compilation took, Cached whether the cache folder
	// probably had it.
	Compile time.Duration `json:"compile_ns"`
	Cached  bool          `json:"cached"`
	// Engine is the name of the one that runs it, native or extism.
	Engine string `json:"engine"`
	// Generation counts the binaries that the module had, this one included.
	Generation int64 `json:"generation"`
	// Metered reports whether Limits.Fuel holds. Else a note explains why not.
	Metered bool `json:"metered"`
	// Links are the linked modules, in the order of [Spec.Links].
	Links []LinkInfo `json:"links,omitempty"`
	// Notes are what an operator should know, sentences whose subject is the module.
	Notes []string `json:"notes,omitempty"`
	// Exports that can be called, in the order of the binary.
	Exports []string `json:"exports"`
}

// Stats counts what happened to a module since it was loaded. Calls in flight may be in some
// numbers and not yet in others.
type Stats struct {
	// Calls that began or named an export that is missing, and those of them that did not succeed.
	Calls, Failures int64
	// Refusals are failures with a [GuestError], Traps those with a [TrapError].
	Refusals, Traps int64
	// Replaced counts instances that were not used again: trapped, stopped,
	// grown too large, or compiled for calls that are shorter or longer than those that come.
	Replaced int64
	// ReplacedBy counts them by reason. A reason that did not occur is missing.
	ReplacedBy map[Reason]int64
	// Instances alive now, idle ones included.
	Instances int64
	// LogsDropped counts log messages above Limits.LogBytes, and those without
	// the grant.
	LogsDropped int64
	// Printed counts the lines that guests wrote to standard output and error without
	// [Grants.Log]; with it these are log messages.
	Printed int64
	// Swaps counts the generations that took over after the first, Rollbacks those
	// of them that had to go again.
	Swaps, Rollbacks int64
	// Fuel used by all calls together; 0 on an engine that does not meter.
	Fuel int64
	// Denied counts requests of guests that a grant or its quota did not allow.
	Denied int64
	// Uses counts what guests did with their grants, by the name of the capability: what they asked of their
	// key-value space is kv, how often they opened, polled or changed a file is fs, the calls of an embedder's functions
	// are functions. A capability may have further numbers, as its package documents. A number that is 0 is missing.
	Uses map[string]int64
	// Late counts host calls that came back more than 100 ms after their call was out of
	// time or cancelled. LateTime is how long they continued after that, all together, and
	// LateImports counts them by the name of the import. See [Limits].LateTime.
	Late        int64
	LateTime    time.Duration
	LateImports map[string]int64
	// Time spent in instances, all calls together. It is exact for the first 64 calls in
	// each of the places for instances, and an estimate from one call in 64 after them.
	Time time.Duration
}

// sample is how many calls are represented by one whose time is taken, after the first ones: two
// looks at the clock cost as much as an empty call.
const sample = 64

// tally counts the calls of a slot until it is given back, and those of a pool.
type tally struct {
	calls, fuel, dropped, printed int64
	time                          time.Duration
	// seen are the calls of a slot since the beginning.
	seen int64
}

// begin counts a call. It takes the time of each of the first ones, which are slower than the
// others, and then of the last one in sample.
func (t *tally) begin() (start time.Time) {
	t.calls++
	t.seen++
	if t.seen <= sample || t.seen%sample == 0 {
		return time.Now()
	}
	return time.Time{}
}

// end adds what a call used. A sampled time includes the calls before it.
func (t *tally) end(start time.Time, out *engine.Outcome) {
	t.dropped += out.LogsDropped
	t.printed += out.Printed
	t.fuel += out.Fuel
	if !start.IsZero() {
		t.add(time.Since(start))
	}
}

func (t *tally) add(d time.Duration) {
	if t.seen > sample {
		d *= sample
	}
	t.time += d
}

// collect takes over what another one has counted.
func (t *tally) collect(of *tally) {
	t.calls += of.calls
	t.fuel += of.fuel
	t.dropped += of.dropped
	t.printed += of.printed
	t.time += of.time
	*of = tally{seen: of.seen}
}

// addTo adds the numbers to the statistics.
func (t *tally) addTo(s *Stats) {
	s.Calls += t.calls
	s.Fuel += t.fuel
	s.LogsDropped += t.dropped
	s.Printed += t.printed
	s.Time += t.time
}

// counters collects Stats, apart from what the places for instances count. It is safe for concurrent use.
type counters struct {
	mu sync.Mutex
	s  Stats
}

// change changes the numbers.
func (c *counters) change(f func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

// instances counts instances that were made, or closed when n is negative.
func (c *counters) instances(n int) { c.change(func(s *Stats) { s.Instances += int64(n) }) }

func (c *counters) fail(err error) {
	_, refused := errors.AsType[*GuestError](err)
	_, trapped := errors.AsType[*TrapError](err)
	c.change(func(s *Stats) {
		s.Failures++
		switch {
		case refused:
			s.Refusals++
		case trapped:
			s.Traps++
		}
	})
}

// replace counts an instance that is gone.
func (c *counters) replace(why Reason) {
	c.change(func(s *Stats) {
		s.Instances--
		s.Replaced++
		if s.ReplacedBy == nil {
			s.ReplacedBy = map[Reason]int64{}
		}
		s.ReplacedBy[why]++
	})
}

// late counts a host call that came back late.
func (c *counters) late(o engine.Overrun) {
	c.change(func(s *Stats) {
		if s.LateImports == nil {
			s.LateImports = map[string]int64{}
		}
		s.Late, s.LateTime = s.Late+1, s.LateTime+o.By
		s.LateImports[o.Name]++
	})
}

func (c *counters) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.ReplacedBy, s.LateImports = maps.Clone(s.ReplacedBy), maps.Clone(s.LateImports)
	return s
}

// because is why the instance of a call is not used again, which failed with err or left an outcome.
func because(err error, out *engine.Outcome) Reason {
	if f, ok := errors.AsType[*engine.Fault](err); ok {
		return f.Kind
	}
	if out.Spent == "" {
		return TrapFault
	}
	return out.Spent
}

// lateWindow is the time in which [Limits].LateTime bounds the lateness of a generation. It
// begins anew, so that a busy machine does not close a module that was loaded months ago.
const lateWindow = time.Hour

// lateness is how late host calls came back within a window. It is safe for concurrent use.
type lateness struct {
	mu    sync.Mutex
	since time.Time
	sum   time.Duration
}

func (l *lateness) add(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) > lateWindow {
		l.since, l.sum = now, 0
	}
	l.sum += by
}

func (l *lateness) total() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum
}

// overrun closes the module when the generation's late host calls took more time than they may.
func (g *Generation) overrun(ctx context.Context) {
	if late := g.late.total(); late > g.limits.LateTime {
		g.module.shut(ctx, fmt.Errorf("%w: within an hour its host calls continued for %v after their calls were out of time or cancelled, and %v are allowed; see Stats.LateImports for which, or raise Limits.LateTime",
			ErrClosed, late.Round(time.Millisecond), g.limits.LateTime))
	}
}
