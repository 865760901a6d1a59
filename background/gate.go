package background

import "sync/atomic"

// gate is a lock that may be held while its holder waits for something else. Who
// waits for it waits on a channel, and not on a mutex, so that testing/synctest sees
// it as waiting. Free it costs one atomic operation. It must not be copied.
type gate struct {
	state atomic.Int32
	freed chan struct{}
}

// States of a gate. A crowded one has, or had, somebody who waits.
const (
	gateFree int32 = iota
	gateHeld
	gateCrowded
)

func newGate() *gate { return &gate{freed: make(chan struct{}, 1)} }

func (g *gate) lock() {
	if g.state.CompareAndSwap(gateFree, gateHeld) {
		return
	}
	for g.state.Swap(gateCrowded) != gateFree {
		<-g.freed
	}
}

func (g *gate) unlock() {
	if g.state.Swap(gateFree) == gateCrowded {
		select {
		case g.freed <- struct{}{}:
		default: // one is on its way to somebody
		}
	}
}
