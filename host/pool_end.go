package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
)

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

// ended claims the end of a pool without calls: it is true once.
func (p *pool) ended() bool {
	if p.over || p.ending == endNever || len(p.free) < len(p.slots) || p.ending == endPatiently && len(p.sessions) > 0 {
		return false
	}
	p.over = true
	return true
}

// making returns a context that close by force ends.
func (p *pool) making(ctx context.Context, s *slot) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.stop = cancel
	return ctx, cancel
}

// refuse ends the waiting of all callers and lets no new ones in. The pool is
// locked.
func (p *pool) refuse(why error) {
	if !errors.Is(p.refusal, ErrClosed) { // the first reason stays
		p.refusal = why
	}
	for _, turn := range p.waiting {
		turn <- nil
	}
	p.waiting = nil
}

// park lets no new calls in. Calls in flight end on their own; sessions continue. revive
// undoes it. Both are quick: the module is locked, so that they come in the order in
// which generations take over.
func (p *pool) park() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusal == nil {
		p.refuse(ErrRetired)
	}
}

// shedAll closes idle instances.
func (p *pool) shedAll(ctx context.Context) {
	p.shedIdle(context.WithoutCancel(ctx), func(*slot) bool { return true })
}

func (p *pool) revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.refusal, ErrRetired) && p.ending == endNever {
		p.refusal = nil
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

// shut refuses new calls, and closes everything after the last one.
func (p *pool) shut(ctx context.Context, why error) {
	p.mu.Lock()
	p.refuse(why)
	p.ending = endNow
	last := p.ended()
	p.mu.Unlock()
	if last {
		p.end(context.WithoutCancel(ctx))
	}
}

// patience is how long close waits for the calls that it has interrupted: a guest that
// computes ends within microseconds, and a host call that ends with its context soon after.
const patience = time.Second

// unfinished counts the calls that were in flight when close ran out of time: those that
// came back when they were interrupted, and those that did not.
type unfinished struct{ interrupted, abandoned int }

// close refuses new calls and waits until the last one is back. When ctx ends
// first, it interrupts those that are out, and does not wait for long; the last of
// them then closes what is left.
func (p *pool) close(ctx context.Context) (unfinished, error) {
	p.shut(ctx, ErrClosed)
	select {
	case <-p.done:
		return unfinished{}, p.err
	default:
	}
	select {
	case <-p.done:
		return unfinished{}, p.err
	case <-ctx.Done():
	}
	asked := p.interrupt()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	left := p.out()
	return unfinished{interrupted: max(0, asked-left), abandoned: left}, ctx.Err()
}

// out is how many calls are in flight.
func (p *pool) out() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.slots) - len(p.free)
}

// interrupt ends the calls in flight and returns how many there were. Sessions without
// one have had their last.
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
			s.inst.Interrupt()
		}
	}
	for s := range p.sessions {
		s.interrupt()
	}
	return len(p.slots) - len(p.free)
}

// end runs once, when no call is in flight and none will be.
func (p *pool) end(ctx context.Context) {
	p.mu.Lock()
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	var idle []engine.Instance
	for i := range p.slots {
		if inst := p.slots[i].inst; inst != nil {
			idle = append(idle, inst)
			p.slots[i].inst = nil
		}
	}
	for s := range p.sessions {
		s.left.Store(true)
		if inst := s.take(); inst != nil {
			idle = append(idle, inst)
		}
	}
	clear(p.sessions)
	p.mu.Unlock()
	p.err = p.finish(ctx, idle)
	close(p.done)
}

// closeAll closes instances and joins what they say.
func closeAll(ctx context.Context, idle []engine.Instance) error {
	errs := make([]error, len(idle))
	for i, inst := range idle {
		errs[i] = inst.Close(ctx)
	}
	return errors.Join(errs...)
}
