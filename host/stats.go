package host

import (
	"errors"
	"sync/atomic"
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
	Engine  EngineName    `json:"engine"`
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

// Stats counts what happened to a module since it was loaded. The numbers are
// read one after the other, so calls in flight may be in some and not in others;
// the last few calls of an instance that is busy may not be in them yet.
type Stats struct {
	// Calls that began or named an export that is missing, and those of them that did not succeed.
	Calls, Failures int64
	// Refusals are failures with a [GuestError], Traps those with a [TrapError].
	Refusals, Traps int64
	// Replaced counts instances that were not used again: trapped, stopped,
	// grown too large, or compiled for calls that are shorter or longer than those that come.
	Replaced int64
	// ReplacedBy counts them by reason. A reason that did not occur is missing.
	ReplacedBy map[Replacement]int64
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

// tally counts the calls of one slot, which has one holder at a time, until they
// are added to the counters of the module: an atomic addition costs as much as
// everything else that a pool does for a call.
type tally struct {
	calls, fuel, nanos, dropped, printed int64
	// seen are the calls since the beginning.
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

func (t *tally) end(start time.Time, out *engine.Outcome) {
	t.dropped += out.LogsDropped
	t.printed += out.Printed
	t.fuel += out.Fuel
	if !start.IsZero() {
		t.took(time.Since(start).Nanoseconds())
	}
}

// took takes the time of a call, which the sampled ones have in common with those before them.
func (t *tally) took(nanos int64) {
	if t.seen > sample {
		nanos *= sample
	}
	t.nanos += nanos
}

// flush adds the tally to the counters.
func (t *tally) flush(c *counters) {
	if t.calls == 0 {
		return
	}
	c.calls.Add(t.calls)
	c.fuel.Add(t.fuel)
	c.nanos.Add(t.nanos)
	c.dropped.Add(t.dropped)
	c.printed.Add(t.printed)
	*t = tally{seen: t.seen}
}

// counters collects Stats.
type counters struct {
	calls, failures, refusals, traps    atomic.Int64
	replaced, instances, dropped, nanos atomic.Int64
	fuel, swaps, rollbacks, printed     atomic.Int64
	why                                 replacements
	late                                overruns
}

func (c *counters) fail(err error) {
	c.failures.Add(1)
	var refusal *GuestError
	var trap *TrapError
	switch {
	case errors.As(err, &refusal):
		c.refusals.Add(1)
	case errors.As(err, &trap):
		c.traps.Add(1)
	}
}

// replace counts an instance that is gone.
func (c *counters) replace(why Replacement) {
	c.instances.Add(-1)
	c.replaced.Add(1)
	c.why.add(why)
}

func (c *counters) stats() Stats {
	s := Stats{
		Calls: c.calls.Load(), Failures: c.failures.Load(), Refusals: c.refusals.Load(), Traps: c.traps.Load(),
		Replaced: c.replaced.Load(), ReplacedBy: c.why.all(), Instances: c.instances.Load(), LogsDropped: c.dropped.Load(), Printed: c.printed.Load(),
		Swaps: c.swaps.Load(), Rollbacks: c.rollbacks.Load(), Fuel: c.fuel.Load(), Time: time.Duration(c.nanos.Load()),
	}
	c.late.stats(&s)
	return s
}
