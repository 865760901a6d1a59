package egress

import (
	"math/bits"
	"sync"
	"time"
)

// Budget is what was used of Policy.PerMinute and Policy.BytesPerMinute. Brokers that share one use it up together, each up to what
// its own policy allows. The zero Budget is unused. It is safe for concurrent use.
type Budget struct{ rate, bytes level }

// level is how much of a bucket is used. It sinks by a bucket's size within a minute.
type level struct {
	mu   sync.Mutex
	used int64
	// rest is what the last sinking left over, in tokens times nanoseconds.
	rest uint64
	at   time.Time
}

// bucket is a token bucket that fills within a minute. Its arithmetic is exact.
// It is safe for concurrent use.
type bucket struct {
	now  func() time.Time
	size int64
	*level
}

// take takes n tokens or none.
func (b *bucket) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sink()
	if n > b.size-b.used {
		return false
	}
	b.used += n
	return true
}

// drain takes n tokens, or all that there are and reports false.
func (b *bucket) drain(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sink()
	if n > b.size-b.used {
		b.used = max(b.used, b.size)
		return false
	}
	b.used += n
	return true
}

// holds reports whether there are n tokens now.
func (b *bucket) holds(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sink()
	return n <= b.size-b.used
}

// sink takes off what came in since the last time. A clock that went back adds nothing.
func (b *bucket) sink() {
	now := b.now()
	passed := now.Sub(b.at)
	b.at = now
	switch {
	case passed <= 0:
		return
	case passed >= time.Minute:
		b.used, b.rest = 0, 0
		return
	}
	high, low := bits.Mul64(uint64(passed), uint64(b.size)) //nolint:gosec // both are positive
	low, carry := bits.Add64(low, b.rest, 0)
	added, rest := bits.Div64(high+carry, low, uint64(time.Minute))
	b.rest = rest
	if added >= uint64(b.used) { //nolint:gosec // never negative
		b.used, b.rest = 0, 0
		return
	}
	b.used -= int64(added) //nolint:gosec // less than used
}
