package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
)

// pool bounds how many calls of a generation run at once and keeps idle
// instances. No lock is held while a guest runs.
type pool struct {
	finish func(ctx context.Context, idle []engine.Instance) error
	// shed closes instances that were idle for a while, or that a parked
	// pool does not keep.
	shed  func(ctx context.Context, idle []engine.Instance)
	count *counters
	// idle is how long an instance may lie unused. The timer runs only while there
	// are instances.
	idle time.Duration
	done chan struct{} // closed when everything is closed

	// hot is the number, from 1, of a free slot with an instance that is not in free:
	// the one used last. It is taken and given back without the lock, as long as slow
	// is zero. A number costs less than a pointer, which the collector watches.
	hot atomic.Int32
	// slow counts reasons to go through the lock: callers that wait, and a refusal.
	slow atomic.Int64

	// burials are instances that are being closed.
	burials sync.WaitGroup

	mu sync.Mutex
	// slots are all places, free those without a call except for hot: a stack, so
	// that the instance used last is used next. Places without an instance lie below.
	slots   []slot
	free    []*slot
	waiting []chan *slot
	// refusal is why there are no new calls: nil, ErrRetired, or one that wraps ErrClosed.
	refusal error
	// ending reports whether everything is closed after the last call, over that this
	// has begun.
	ending   ending
	over     bool
	sessions map[*Session]struct{}
	sweeper  *time.Timer
	err      error // valid once done is closed
}

// slot is a place for one call.
type slot struct {
	number int32
	// inst is nil when the holder has to make one. Only the holder of the slot
	// changes it, under the pool's lock.
	inst engine.Instance
	// stop ends the making of an instance.
	stop context.CancelCauseFunc
	// grave is closed when the instance that was there before is gone. Until then
	// there is no new one, so a slot never has more than two.
	grave chan struct{}
	// used is set when the slot is taken and cleared by each sweep. Like in and out,
	// the input and outcome of the call, and tally it belongs to the holder of the slot.
	used  bool
	in    engine.Input
	out   engine.Outcome
	tally tally
}

func newPool(limits Limits, count *counters, finish func(context.Context, []engine.Instance) error, shed func(context.Context, []engine.Instance)) *pool {
	size := limits.Instances
	p := &pool{
		finish: finish, shed: shed, count: count, idle: limits.IdleTimeout, done: make(chan struct{}),
		slots: make([]slot, size), free: make([]*slot, size), sessions: map[*Session]struct{}{},
	}
	for i := range p.slots {
		p.slots[i].number = int32(i + 1) //nolint:gosec // a number of instances
		p.free[i] = &p.slots[i]
	}
	return p
}

// take waits for a free slot until ctx ends or the pool takes no more calls; a
// retired pool still has slots for a session. release must be called.
func (p *pool) take(ctx context.Context, session bool) (*slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s := p.takeHot(); s != nil {
		return s, nil
	}
	p.mu.Lock()
	if p.refusal != nil && (!session || errors.Is(p.refusal, ErrClosed)) {
		defer p.mu.Unlock()
		return nil, p.refusal
	}
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		s.used = true
		p.mu.Unlock()
		return s, nil
	}
	// From here on slots come back through the lock; one may have come just before.
	p.slow.Add(1)
	if s := p.takeHot(); s != nil {
		p.slow.Add(-1)
		p.mu.Unlock()
		return s, nil
	}
	turn := make(chan *slot, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	return p.wait(ctx, turn)
}

// takeHot takes the hot slot, if there is one.
func (p *pool) takeHot() *slot {
	n := p.hot.Swap(0)
	if n == 0 {
		return nil
	}
	s := &p.slots[n-1]
	s.used = true
	return s
}

// wait waits for a turn. A nil slot means that the pool takes no more calls.
func (p *pool) wait(ctx context.Context, turn chan *slot) (*slot, error) {
	select {
	case s := <-turn:
		if s == nil {
			return nil, p.refused()
		}
		return s, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.waiting, turn)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.slow.Add(-1)
	}
	p.mu.Unlock()
	if i < 0 { // The turn came at the same moment.
		if s := <-turn; s != nil {
			p.release(ctx, s)
		}
	}
	return nil, ctx.Err()
}

// refused explains why a caller that waited got no slot. A pool that was parked and
// revived in between refuses nothing any more: its callers try again.
func (p *pool) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusal == nil {
		return ErrRetired
	}
	return p.refusal
}

// closedBy is why the pool was closed, ErrClosed as long as it is not.
func (p *pool) closedBy() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.refusal, ErrClosed) {
		return p.refusal
	}
	return ErrClosed
}

// release gives a slot back. Its instance, if any, is used again, unless the
// pool takes no more calls.
func (p *pool) release(ctx context.Context, s *slot) {
	if p.slow.Load() != 0 || s.inst == nil || !p.hot.CompareAndSwap(0, s.number) {
		p.giveBack(ctx, s)
	} else if p.slow.Load() != 0 {
		p.takeBack(ctx)
	}
}

// takeBack gives the hot slot back through the lock. The goroutine that made slow non-zero while
// it was put there looked at hot before or after that. Before, it is still there.
func (p *pool) takeBack(ctx context.Context) {
	if s := p.takeHot(); s != nil {
		p.giveBack(ctx, s)
	}
}

// giveBack is release through the lock.
func (p *pool) giveBack(ctx context.Context, s *slot) {
	s.tally.flush(p.count)
	p.mu.Lock()
	if p.hand(s) {
		p.mu.Unlock()
		return
	}
	if p.refusal != nil && s.inst != nil {
		surplus := s.inst
		s.inst = nil
		p.mu.Unlock()
		p.shed(context.WithoutCancel(ctx), []engine.Instance{surplus})
		p.mu.Lock()
	}
	p.putBack(s)
	last := p.ended()
	p.mu.Unlock()
	if last {
		p.end(context.WithoutCancel(ctx))
	}
}

// hand gives a slot to the caller that has waited longest, if one waits. The pool
// is locked; the channel has room.
func (p *pool) hand(s *slot) bool {
	if len(p.waiting) == 0 {
		return false
	}
	turn := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.slow.Add(-1)
	s.used = true
	turn <- s
	return true
}

// putBack frees a slot: on top of the stack with an instance, below without.
func (p *pool) putBack(s *slot) {
	if s.inst == nil {
		p.free = slices.Insert(p.free, 0, s)
		return
	}
	p.free = append(p.free, s)
}

// cool puts the hot slot into free. A caller may have begun to wait just as it was
// given back, and the goroutine that gave it back finds it gone: then it is handed on here. The
// pool is locked.
func (p *pool) cool() {
	if n := p.hot.Swap(0); n != 0 {
		s := &p.slots[n-1]
		s.tally.flush(p.count)
		if !p.hand(s) {
			p.putBack(s)
		}
	}
}

// flush makes the counters of the hot slot visible.
func (p *pool) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cool()
}

// set puts an instance into a slot, or takes it out.
func (p *pool) set(s *slot, inst engine.Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.inst = inst
	if inst != nil {
		p.arm()
	}
}
