package mcp

import (
	"errors"
	"sync"
	"time"
)

// A server may send so many bytes a second unasked: notifications and requests, each with a surcharge. The SDK queues them
// without a bound, and handles them faster than that.
const (
	maxUnasked   = 4 << 20
	messagePrice = 2 << 10
)

// maxRequests is how many requests of a server may wait for their answers.
const maxRequests = 64

var errFlood = errors.New("it sent more notifications and requests than are allowed")

// meter counts what arrives in a second.
type meter struct {
	mu    sync.Mutex
	begun time.Time
	spent int
}

// spend returns errFlood when more has arrived than is allowed.
func (m *meter) spend(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.begun) >= time.Second {
		m.begun, m.spent = now, 0
	}
	if m.spent += n; m.spent > maxUnasked {
		return errFlood
	}
	return nil
}
