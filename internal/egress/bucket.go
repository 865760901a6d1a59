package egress

import (
	"math/bits"
	"sync"
	"time"
)

// bucket is a token bucket that fills within a minute. Its arithmetic is exact.
// It is safe for concurrent use.
type bucket struct {
	now  func() time.Time
	size int64

	mu     sync.Mutex
	tokens int64
	// rest is what the last filling left over, in tokens times nanoseconds.
	rest   uint64
	filled time.Time
}

func newBucket(size int64, now func() time.Time) *bucket {
	return &bucket{now: now, size: size, tokens: size, filled: now()}
}

// take takes n tokens or none.
func (b *bucket) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	if n > b.tokens {
		return false
	}
	b.tokens -= n
	return true
}

// drain takes n tokens, or all that there are and reports false.
func (b *bucket) drain(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	if n > b.tokens {
		b.tokens = 0
		return false
	}
	b.tokens -= n
	return true
}

// holds reports whether there are n tokens now.
func (b *bucket) holds(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	return n <= b.tokens
}

// fill adds what came in since the last filling. A clock that went back adds nothing.
func (b *bucket) fill() {
	now := b.now()
	passed := now.Sub(b.filled)
	b.filled = now
	switch {
	case passed <= 0:
		return
	case passed >= time.Minute:
		b.tokens, b.rest = b.size, 0
		return
	}
	high, low := bits.Mul64(uint64(passed), uint64(b.size)) //nolint:gosec // both are positive
	low, carry := bits.Add64(low, b.rest, 0)
	added, rest := bits.Div64(high+carry, low, uint64(time.Minute))
	b.rest = rest
	if room := b.size - b.tokens; added >= uint64(room) { //nolint:gosec // never negative
		b.tokens, b.rest = b.size, 0
		return
	}
	b.tokens += int64(added) //nolint:gosec // less than the size
}
