package host

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// pool bounds how many calls of a module run at once and keeps idle instances.
// No lock is held while a guest runs.
type pool struct {
	finish func(ctx context.Context, idle []instance) error
	done   chan struct{} // closed when everything is closed

	mu sync.Mutex
	// slots are all places, free those without a call: a stack, so that the
	// instance used last is used next. Places without an instance lie below.
	slots   []slot
	free    []*slot
	waiting []chan *slot
	closed  bool
	err     error // valid once done is closed
}

// slot is a place for one call.
type slot struct {
	// inst is nil when the holder has to make one. Only the holder of the slot
	// changes it, under the pool's lock.
	inst instance
	// stop ends the making of an instance.
	stop context.CancelCauseFunc
}

func newPool(size int, finish func(context.Context, []instance) error) *pool {
	p := &pool{finish: finish, done: make(chan struct{}), slots: make([]slot, size), free: make([]*slot, size)}
	for i := range p.slots {
		p.free[i] = &p.slots[i]
	}
	return p
}

// acquire waits for a free slot until ctx ends or the pool is closed. release
// must be called.
func (p *pool) acquire(ctx context.Context) (*slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	turn := make(chan *slot, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	return p.wait(ctx, turn)
}

// wait waits for a turn. A nil slot means that the pool was closed.
func (p *pool) wait(ctx context.Context, turn chan *slot) (*slot, error) {
	select {
	case s := <-turn:
		if s == nil {
			return nil, ErrClosed
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

// release gives a slot back. Its instance, if any, is used again.
func (p *pool) release(ctx context.Context, s *slot) {
	p.mu.Lock()
	if len(p.waiting) > 0 {
		turn := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.mu.Unlock()
		turn <- s
		return
	}
	if s.inst == nil {
		p.free = slices.Insert(p.free, 0, s)
	} else {
		p.free = append(p.free, s)
	}
	last := p.closed && len(p.free) == len(p.slots)
	p.mu.Unlock()
	if last {
		p.end(context.WithoutCancel(ctx))
	}
}

// set puts an instance into a slot, or takes it out.
func (p *pool) set(s *slot, inst instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.inst = inst
}

// making returns a context that close by force ends.
func (p *pool) making(ctx context.Context, s *slot) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.stop = cancel
	return ctx, cancel
}

// close refuses new calls and waits until the last one is back. When ctx ends
// first, it interrupts those that are out; the last of them then closes what is
// left. It reports how many were interrupted.
func (p *pool) close(ctx context.Context) (interrupted int, err error) {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	for _, turn := range p.waiting {
		turn <- nil
	}
	p.waiting = nil
	quiet := len(p.free) == len(p.slots)
	p.mu.Unlock()
	if first && quiet {
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
		if s.inst != nil {
			s.inst.interrupt()
		}
	}
	return len(p.slots) - len(p.free)
}

// end runs once, when the pool is closed and no call is in flight.
func (p *pool) end(ctx context.Context) {
	p.mu.Lock()
	var idle []instance
	for i := range p.slots {
		if inst := p.slots[i].inst; inst != nil {
			idle = append(idle, inst)
			p.slots[i].inst = nil
		}
	}
	p.mu.Unlock()
	p.err = p.finish(ctx, idle)
	close(p.done)
}

// closeAll closes instances and joins what they say.
func closeAll(ctx context.Context, idle []instance) error {
	errs := make([]error, len(idle))
	for i, inst := range idle {
		errs[i] = inst.close(ctx)
	}
	return errors.Join(errs...)
}
