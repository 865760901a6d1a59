package serve

import (
	"math"
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// maxCallers bounds how many callers a limiter knows.
const maxCallers = 4096

// limiter bounds the rate of requests of each caller. It is safe for concurrent use.
type limiter struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

func newLimiter(l Limits) *limiter {
	return &limiter{limit: rate.Limit(l.Rate), burst: l.Burst, callers: map[string]*rate.Limiter{}}
}

// take counts a request. It returns how many seconds the caller should wait, 0 if the request is
// within the limit.
func (l *limiter) take(caller string) int {
	if l.limit < 0 || l.burst < 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.callers[caller]
	if c == nil {
		l.forget()
		c = rate.NewLimiter(l.limit, l.burst)
		l.callers[caller] = c
	}
	if c.Allow() {
		return 0
	}
	return int(math.Ceil(math.Max(1, (1-c.Tokens())/float64(l.limit))))
}

// forget makes room for a caller: those that have their whole burst go first.
func (l *limiter) forget() {
	if len(l.callers) < maxCallers {
		return
	}
	for name, c := range l.callers {
		if c.Tokens() >= float64(l.burst) {
			delete(l.callers, name)
		}
	}
	for name := range l.callers {
		if len(l.callers) < maxCallers {
			return
		}
		delete(l.callers, name)
	}
}

// peer is the address of a client, without its port.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
