package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pool bounds how many calls of a generation run at once and keeps idle
// instances. No lock is held while a guest runs.
type pool struct {
	finish func(ctx context.Context, idle []instance) error
	// shed closes instances that nobody has used for a while, or that a parked
	// pool does not keep.
	shed  func(ctx context.Context, idle []instance)
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
	// refusal is why there are no new calls: nil, ErrRetired or ErrClosed.
	refusal error
	// ending says whether everything is closed after the last call, over that this
	// has begun.
	ending   ending
	over     bool
	sessions map[*Session]struct{}
	sweeper  *time.Timer
	err      error // valid once done is closed
}

// ending is what a pool without calls waits for.
type ending int

// Endings of a pool.
const (
	endNever ending = iota
	// endPatiently closes everything after the last call and the last session.
	endPatiently
	// endNow closes everything after the last call.
	endNow
)

// slot is a place for one call.
type slot struct {
	number int32
	// inst is nil when the holder has to make one. Only the holder of the slot
	// changes it, under the pool's lock.
	inst instance
	// guest is the instance of a session while the slot is used for it.
	guest instance
	// stop ends the making of an instance.
	stop context.CancelCauseFunc
	// grave is closed when the instance that was there before is gone. Until then
	// there is no new one, so a slot never has more than two.
	grave chan struct{}
	// used is set when the slot is taken and cleared by each sweep. Like out, the
	// outcome of the call, and tally it belongs to the holder of the slot.
	used  bool
	out   outcome
	tally tally
}

func newPool(limits Limits, count *counters, finish func(context.Context, []instance) error, shed func(context.Context, []instance)) *pool {
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
	if n := p.hot.Swap(0); n != 0 {
		s := &p.slots[n-1]
		s.used = true
		return s, nil
	}
	p.mu.Lock()
	if p.refusal != nil && (p.refusal == ErrClosed || !session) { //nolint:errorlint // it is one of the two
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
	if n := p.hot.Swap(0); n != 0 {
		s := &p.slots[n-1]
		p.slow.Add(-1)
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

// refused says why a caller that waited got no slot. A pool that was parked and
// revived in between refuses nothing any more: its callers try again.
func (p *pool) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusal == nil {
		return ErrRetired
	}
	return p.refusal
}

// release gives a slot back. Its instance, if any, is used again, unless the
// pool takes no more calls.
func (p *pool) release(ctx context.Context, s *slot) {
	if p.slow.Load() != 0 || s.inst == nil || !p.hot.CompareAndSwap(0, s.number) {
		p.giveBack(ctx, s)
		return
	}
	// Whoever made slow non-zero since then looked at hot before or after the swap.
	// Before, the slot is still there.
	if p.slow.Load() != 0 {
		if n := p.hot.Swap(0); n != 0 {
			p.giveBack(ctx, &p.slots[n-1])
		}
	}
}

// giveBack is release through the lock.
func (p *pool) giveBack(ctx context.Context, s *slot) {
	s.tally.flush(p.count)
	p.mu.Lock()
	if len(p.waiting) > 0 {
		turn := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.slow.Add(-1)
		s.used = true
		p.mu.Unlock()
		turn <- s
		return
	}
	if p.refusal != nil && s.inst != nil {
		surplus := s.inst
		s.inst = nil
		p.mu.Unlock()
		p.shed(context.WithoutCancel(ctx), []instance{surplus})
		p.mu.Lock()
	}
	p.putBack(s)
	last := p.ended()
	p.mu.Unlock()
	if last {
		p.end(context.WithoutCancel(ctx))
	}
}

// putBack frees a slot: on top of the stack with an instance, below without.
func (p *pool) putBack(s *slot) {
	if s.inst == nil {
		p.free = slices.Insert(p.free, 0, s)
		return
	}
	p.free = append(p.free, s)
}

// cool puts the hot slot into free. The pool is locked.
func (p *pool) cool() {
	if n := p.hot.Swap(0); n != 0 {
		s := &p.slots[n-1]
		s.tally.flush(p.count)
		p.putBack(s)
	}
}

// flush makes the counters of the hot slot visible.
func (p *pool) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cool()
}

// ended claims the end of a pool without calls: it is true once.
func (p *pool) ended() bool {
	if p.over || p.ending == endNever || len(p.free) < len(p.slots) || p.ending == endPatiently && len(p.sessions) > 0 {
		return false
	}
	p.over = true
	return true
}

// set puts an instance into a slot, or takes it out.
func (p *pool) set(s *slot, inst instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.inst = inst
	if inst != nil {
		p.arm()
	}
}

// lend makes a slot run the instance of a session, or no longer.
func (p *pool) lend(s *slot, inst instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.guest = inst
}

// making returns a context that close by force ends.
func (p *pool) making(ctx context.Context, s *slot) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.stop = cancel
	return ctx, cancel
}

// refuse ends the waiting of all callers and lets no new ones in.
func (p *pool) refuse(why error) {
	if p.refusal == nil {
		p.slow.Add(1)
	}
	p.refusal = why
	p.cool()
	for _, turn := range p.waiting {
		turn <- nil
	}
	p.slow.Add(-int64(len(p.waiting)))
	p.waiting = nil
}

// park lets no new calls in and closes idle instances. Calls in flight end on
// their own; sessions go on. revive undoes it.
func (p *pool) park(ctx context.Context) {
	p.mu.Lock()
	if p.refusal == nil {
		p.refuse(ErrRetired)
	}
	p.mu.Unlock()
	p.shedIdle(context.WithoutCancel(ctx), func(*slot) bool { return true })
}

func (p *pool) revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.refusal, ErrRetired) && p.ending == endNever {
		p.refusal = nil
		p.slow.Add(-1)
	}
}

// retire closes the pool after the last call and the last session, without
// waiting for them.
func (p *pool) retire(ctx context.Context) {
	p.mu.Lock()
	if p.refusal == nil {
		p.refuse(ErrRetired)
	}
	p.ending = max(p.ending, endPatiently)
	last := p.ended()
	p.mu.Unlock()
	if last {
		p.end(context.WithoutCancel(ctx))
	}
}

// close refuses new calls and waits until the last one is back. When ctx ends
// first, it interrupts those that are out; the last of them then closes what is
// left. It reports how many were interrupted.
func (p *pool) close(ctx context.Context) (interrupted int, err error) {
	p.mu.Lock()
	p.refuse(ErrClosed)
	p.ending = endNow
	last := p.ended()
	p.mu.Unlock()
	if last {
		p.end(context.WithoutCancel(ctx))
	}
	select {
	case <-p.done:
		return 0, p.err
	default:
	}
	select {
	case <-p.done:
		return 0, p.err
	case <-ctx.Done():
	}
	return p.interrupt(), ctx.Err()
}

// interrupt ends the calls in flight and returns how many there were.
func (p *pool) interrupt() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		s := &p.slots[i]
		if slices.Contains(p.free, s) {
			continue
		}
		if s.stop != nil {
			s.stop(ErrClosed)
		}
		for _, inst := range []instance{s.inst, s.guest} {
			if inst != nil {
				inst.interrupt()
			}
		}
	}
	return len(p.slots) - len(p.free)
}

// end runs once, when no call is in flight and none will be.
func (p *pool) end(ctx context.Context) {
	p.mu.Lock()
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	var idle []instance
	for i := range p.slots {
		if inst := p.slots[i].inst; inst != nil {
			idle = append(idle, inst)
			p.slots[i].inst = nil
		}
	}
	for s := range p.sessions {
		if inst := s.take(); inst != nil {
			idle = append(idle, inst)
		}
	}
	clear(p.sessions)
	p.mu.Unlock()
	p.err = p.finish(ctx, idle)
	close(p.done)
}

// shedIdle closes the instances of the free slots that which names. The slots
// are taken meanwhile, so that the pool does not end before.
func (p *pool) shedIdle(ctx context.Context, which func(*slot) bool) {
	p.mu.Lock()
	p.cool()
	var taken []*slot
	var idle []instance
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

// closeAll closes instances and joins what they say.
func closeAll(ctx context.Context, idle []instance) error {
	errs := make([]error, len(idle))
	for i, inst := range idle {
		errs[i] = inst.close(ctx)
	}
	return errors.Join(errs...)
}
