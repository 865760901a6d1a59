package egress

import (
	"maps"
	"sync"
)

// Stats counts what a broker did since it was made.
type Stats struct {
	// Requests are calls of Do, however they ended.
	Requests int64
	// Refused are those that ended with a Refusal, by its reason.
	Refused map[Reason]int64
	// Failed are those that ended with another error.
	Failed int64
	// Redirects are those that were followed.
	Redirects int64
	// Connections are those that were made.
	Connections int64
	// Redacted are pieces of responses that were replaced, because they told a secret.
	Redacted int64
	// BytesIn and BytesOut count all of HTTP, above TLS.
	BytesIn, BytesOut int64
}

// counters guards a Stats.
type counters struct {
	mu    sync.Mutex
	stats Stats
}

func newCounters() *counters {
	return &counters{stats: Stats{Refused: map[Reason]int64{}}}
}

func (c *counters) update(change func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

// Stats returns the counts so far.
func (b *Broker) Stats() Stats {
	b.stats.mu.Lock()
	defer b.stats.mu.Unlock()
	s := b.stats.stats
	s.Refused = maps.Clone(s.Refused)
	return s
}
