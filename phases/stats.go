package phases

import "sync/atomic"

// Stats counts what became of the calls of one plugin since its runtime was made.
type Stats struct {
	// Calls of hooks and handlers, second ones included; Skipped ones were not made,
	// because of a quarantine or of earlier calls that still run.
	Calls   int64
	Skipped int64
	// Failed calls: an error, a panic, a missed deadline, a refused reply.
	Failed int64
	// Refused replies went beyond the mode, the limits or the structure guard.
	Refused int64
	// Deferred calls collided, and were made again.
	Deferred int64
	// Running are abandoned calls that have not returned.
	Running int64
}

// counters are Stats in the making.
type counters struct {
	calls, skipped, failed, refused, deferred atomic.Int64
}

func (s *counters) count(c *call) {
	one := func(n *atomic.Int64, is bool) {
		if is {
			n.Add(1)
		}
	}
	one(&s.calls, c.attempt > 0)
	one(&s.skipped, c.attempt == 0)
	one(&s.failed, c.attempt > 0 && (c.err != nil || c.fault != nil))
	one(&s.refused, c.err != nil && c.fault == nil && len(c.refused) > 0)
	one(&s.deferred, c.deferred != "")
}

// Stats returns the counters of each plugin, by name.
func (r *Runtime) Stats() map[string]Stats {
	out := make(map[string]Stats, len(r.plugins))
	for _, p := range r.plugins {
		s := &p.stats
		out[p.name] = Stats{
			Calls: s.calls.Load(), Skipped: s.skipped.Load(), Failed: s.failed.Load(), Refused: s.refused.Load(),
			Deferred: s.deferred.Load(), Running: p.stuck.Load(),
		}
	}
	return out
}
