package host

import (
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
)

// shedIdle closes the instances of the free slots that which names. The slots
// are taken meanwhile, so that the pool does not end before.
func (p *pool) shedIdle(ctx context.Context, which func(*slot) bool) {
	p.mu.Lock()
	p.cool()
	var taken []*slot
	var idle []engine.Instance
	p.free = slices.DeleteFunc(p.free, func(s *slot) bool {
		if s.inst == nil || !which(s) {
			return false
		}
		taken, idle = append(taken, s), append(idle, s.inst)
		s.inst = nil
		return true
	})
	p.mu.Unlock()
	if len(idle) > 0 {
		p.shed(ctx, idle)
	}
	for _, s := range taken {
		p.release(ctx, s)
	}
}

// arm starts the sweeper if it is not running. The pool is locked.
func (p *pool) arm() {
	if p.sweeper == nil && p.refusal == nil {
		p.sweeper = time.AfterFunc(p.idle, p.sweep)
	}
}

// sweep closes the idle instances that no call has used since the last sweep, so
// an instance lies unused for at least the idle time and at most twice that.
func (p *pool) sweep() {
	ctx := context.Background() //nolint:forbidigo // a timer has none
	p.shedIdle(ctx, func(s *slot) bool { return !s.used })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cool()
	for _, s := range p.free { // those in use are used
		s.used = false
	}
	p.sweeper = nil
	if n := len(p.free); n < len(p.slots) || p.free[n-1].inst != nil {
		p.arm()
	}
}
