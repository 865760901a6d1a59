package host

import (
	"context"
	"errors"
	"sync"
)

// pool bounds how many calls of a module run at once and keeps idle instances.
// No lock is held while a guest runs.
type pool struct {
	slots   chan struct{} // one token for each call in flight
	closing chan struct{} // closed when Close begins
	done    chan struct{} // closed when everything is closed
	finish  func(ctx context.Context, idle []instance) error

	mu     sync.Mutex
	idle   []instance
	leases map[*lease]struct{}
	closed bool
	err    error // valid once done is closed
}

// lease is the right to run one call.
type lease struct {
	inst   instance // nil when the holder has to make one
	cancel context.CancelCauseFunc
}

func newPool(size int, finish func(context.Context, []instance) error) *pool {
	return &pool{
		slots:   make(chan struct{}, size),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
		finish:  finish,
		leases:  map[*lease]struct{}{},
	}
}

// acquire waits for a free slot. The context it returns ends when the caller's
// does or when the pool is closed by force; release must be called.
func (p *pool) acquire(ctx context.Context) (context.Context, *lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-p.closing:
		return nil, nil, ErrClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		<-p.slots
		return nil, nil, ErrClosed
	}
	l := &lease{}
	ctx, l.cancel = context.WithCancelCause(ctx)
	if n := len(p.idle); n > 0 {
		l.inst, p.idle[n-1] = p.idle[n-1], nil
		p.idle = p.idle[:n-1]
	}
	p.leases[l] = struct{}{}
	return ctx, l, nil
}

// release ends a lease. The instance, if any, goes back to the pool.
func (p *pool) release(ctx context.Context, l *lease) {
	l.cancel(nil)
	p.mu.Lock()
	delete(p.leases, l)
	if l.inst != nil {
		p.idle = append(p.idle, l.inst)
	}
	last := p.closed && len(p.leases) == 0
	p.mu.Unlock()
	<-p.slots
	if last {
		p.end(context.WithoutCancel(ctx))
	}
}

// close refuses new leases and waits until the last one is back. When ctx ends
// first, it interrupts those that are out; the last of them then closes what is
// left. It reports how many were interrupted.
func (p *pool) close(ctx context.Context) (interrupted int, err error) {
	p.mu.Lock()
	first := !p.closed
	if first {
		p.closed = true
		close(p.closing)
	}
	quiet := len(p.leases) == 0
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
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.leases {
		l.cancel(ErrClosed)
	}
	return len(p.leases), ctx.Err()
}

// end runs once, when the pool is closed and nothing is leased.
func (p *pool) end(ctx context.Context) {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
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
