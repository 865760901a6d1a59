package host

import (
	"context"
	"sync/atomic"
)

// gate lets one caller through at a time. Without others that costs two atomic steps,
// where a channel locks twice. Whoever comes first need not be served first.
type gate struct {
	held    atomic.Bool
	waiting atomic.Int32
	// left has a token when somebody left while others waited.
	left chan struct{}
}

func newGate() gate { return gate{left: make(chan struct{}, 1)} }

// enter waits until the gate is free, or ctx is done. leave must be called.
func (g *gate) enter(ctx context.Context) error {
	if g.held.CompareAndSwap(false, true) {
		return nil
	}
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	for !g.held.CompareAndSwap(false, true) {
		select {
		case <-g.left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// leave frees the gate. Whoever began to wait before sees that, or is seen here.
func (g *gate) leave() {
	g.held.Store(false)
	if g.waiting.Load() > 0 {
		select {
		case g.left <- struct{}{}:
		default: // there is a token for one of them
		}
	}
}
