package compaction

import (
	"cmp"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// defaultPlaces is how many compactions run at a time by default.
const defaultPlaces = 4

// Limiter bounds how many compactions are under way at a time, in all threads of
// all compactors that share it. A place is taken when the policy allows a start, so
// that a hundred threads over their threshold do not start a hundred summaries.
// It is safe for concurrent use.
type Limiter struct {
	most int

	mu    sync.Mutex
	next  int
	taken map[int]time.Time // until when, whatever happens
}

// NewLimiter returns a limiter of so many places, 4 when 0 or less.
func NewLimiter(places int) *Limiter {
	return &Limiter{most: cmp.Or(max(places, 0), defaultPlaces), taken: make(map[int]time.Time)}
}

// look returns how many places are taken.
func (l *Limiter) look(now time.Time) abi.QueueSignal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signal(now)
}

func (l *Limiter) signal(now time.Time) abi.QueueSignal {
	for n, end := range l.taken {
		if now.After(end) {
			delete(l.taken, n) // a summarizer that never returns
		}
	}
	n := len(l.taken)
	return abi.QueueSignal{QueuedRequests: int64(n), MaxQueuedRequests: int64(l.most), Saturated: n >= l.most}
}

// take reserves a place until then, whatever happens. It returns nil when there is none. Release
// gives the place back; calling it again does nothing.
func (l *Limiter) take(now, until time.Time) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.signal(now).Saturated {
		return nil
	}
	l.next++
	n := l.next
	l.taken[n] = until
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.taken, n)
	}
}

// Taken is how many places are taken now.
func (l *Limiter) Taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.taken)
}
