package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
)

// pool bounds how many calls of a generation run at once and keeps idle
// instances. No lock is held while a guest runs.
type pool struct {
	finish func(ctx context.Context, idle []engine.Instance) error
	// shed closes instances that were idle for a while, or that a parked
	// pool does not keep.
	shed func(ctx context.Context, idle []engine.Instance)
	// idle is how long an instance may lie unused. The timer runs only while there
	// are instances.
	idle time.Duration
	done chan struct{} // closed when everything is closed

	// burials are instances of sessions that are being closed.
	burials sync.WaitGroup

	mu sync.Mutex
	// total counts the calls that have ended.
	total tally
	// slots are all places, free those without a call: a stack, so that the instance used
	// last is used next. Places without an instance lie below.
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
	// inst is nil when the holder has to make one. Only the holder of the slot
	// changes it, under the pool's lock.
	inst engine.Instance
	// stop ends the making of an instance.
	stop context.CancelCauseFunc
	// used is set when the slot is taken and cleared by each sweep.
	used bool
	// session is whose instance runs the call in progress, nil for the slot's own. Like in and
	// out, the input and outcome of the call, and tally it belongs to the holder of the slot.
	session *Session
	in      engine.Input
	out     engine.Outcome
	tally   tally
}

func newPool(limits Limits, finish func(context.Context, []engine.Instance) error, shed func(context.Context, []engine.Instance)) *pool {
	size := limits.Instances
	p := &pool{
		finish: finish, shed: shed, idle: limits.IdleTimeout, done: make(chan struct{}),
		slots: make([]slot, size), free: make([]*slot, size), sessions: map[*Session]struct{}{},
	}
	for i := range p.slots {
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
	turn := make(chan *slot, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	return p.wait(ctx, turn)
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
	p.mu.Lock()
	p.total.collect(&s.tally)
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

// set puts an instance into a slot, or takes it out.
func (p *pool) set(s *slot, inst engine.Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.inst = inst
	if inst != nil {
		p.arm()
	}
}

// shedIdle closes the instances of the free slots that which names. The slots
// are taken meanwhile, so that the pool does not end before.
func (p *pool) shedIdle(ctx context.Context, which func(*slot) bool) {
	p.mu.Lock()
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
	for _, s := range p.free { // those in use are used
		s.used = false
	}
	p.sweeper = nil
	if n := len(p.free); n < len(p.slots) || p.free[n-1].inst != nil {
		p.arm()
	}
}

// addTo adds what was counted to the statistics.
func (p *pool) addTo(s *Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.addTo(s)
}
