package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Session is an instance that keeps its memory, globals, tables and variables
// from call to call, for a guest that cannot do without. It needs
// [Grants.Sticky]. It runs one call at a time and may be used by several
// goroutines; the caller that opened it closes it.
//
// A session stays on the generation that it was opened on, also when the module
// is swapped: that one is closed after its last session. [Module.Close] ends
// sessions.
type Session struct {
	gen *Generation
	// turn is for the call in progress.
	turn turn
	// left reports that the pool has let go of the session.
	left atomic.Bool

	// closed is set by Close, before it has the turn.
	closed atomic.Bool

	mu sync.Mutex
	// inst changes under mu, and only while its session has the turn or its pool no
	// calls. So a call reads it without the lock.
	inst engine.Instance
}

// turn is held by one caller at a time.
type turn chan struct{}

// enter waits until the turn is free, or ctx is done. leave must be called.
func (t turn) enter(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) leave() { <-t }

// Session opens a session on the current generation. There are at most
// Limits.Sessions at a time on a generation; one more fails with [ErrLimit].
// Without the grant the error is [ErrNotGranted].
func (m *Module) Session(ctx context.Context) (*Session, error) {
	for {
		s, retired, err := m.Current().session(ctx)
		if !retired {
			return s, err
		}
	}
}

func (g *Generation) session(ctx context.Context) (_ *Session, retired bool, _ error) {
	if !g.sticky {
		return nil, false, fmt.Errorf("host: module %q: session: %w; set Grants.Sticky", g.module.name, ErrNotGranted)
	}
	s := &Session{gen: g, turn: make(turn, 1)}
	if err := g.pool.join(s, g.limits.Sessions); err != nil {
		return nil, errors.Is(err, ErrRetired), fmt.Errorf("host: module %q: session: %w", g.module.name, err)
	}
	slot, err := g.pool.take(ctx, false)
	if err != nil {
		g.pool.leave(ctx, s)
		return nil, errors.Is(err, ErrRetired), fmt.Errorf("host: module %q: session: waiting for an instance: %w", g.module.name, err)
	}
	defer g.pool.release(ctx, slot)
	inst, err := g.instantiate(ctx, slot, true)
	if err != nil {
		g.pool.leave(ctx, s)
		return nil, false, err
	}
	s.mu.Lock()
	s.inst = inst
	s.mu.Unlock()
	return s, false, nil
}

// Generation returns the generation that the session runs on.
func (s *Session) Generation() *Generation { return s.gen }

// Call is [Module.Call] on the session's instance. After a trap the instance is
// gone, and calls fail with [ErrSessionLost]; after Close, or when the module was
// closed, with [ErrClosed].
func (s *Session) Call(ctx context.Context, export string, input ...[]byte) ([]byte, error) {
	g, size := s.gen, engine.SizeOfParts(input)
	t, err := g.target(ctx, export, size)
	if err != nil {
		return nil, err
	}
	if err := s.turn.enter(ctx); err != nil {
		return nil, fmt.Errorf("host: module %q export %q: waiting for the session: %w", g.module.name, export, err)
	}
	defer s.turn.leave()
	slot, err := g.pool.acquireFor(ctx, s)
	if err != nil {
		return nil, g.unserved(export, err)
	}
	slot.session = s
	slot.in.Set(input, size)
	over := false
	defer func() { g.over(ctx, slot, over) }()
	output, err := g.serve(ctx, slot, t)
	over = true
	return output, err
}

// Close ends the session. It waits for a call in progress until ctx is done, and
// interrupts it then. Closing again is fine.
func (s *Session) Close(ctx context.Context) error {
	s.closed.Store(true)
	if s.turn.enter(ctx) != nil {
		s.interrupt()
		_ = s.turn.enter(context.WithoutCancel(ctx)) // it waits for as long as it takes
	}
	defer s.turn.leave()
	err := s.bury(ctx, "")
	s.gen.pool.leave(ctx, s)
	return err
}

// instance returns the session's instance, or why there is none, to a call that has
// the turn and a slot.
func (s *Session) instance() (engine.Instance, error) {
	switch {
	case s.closed.Load():
		return nil, ErrClosed
	case s.inst == nil:
		return nil, ErrSessionLost
	}
	return s.inst, nil
}

// interrupt ends the call in progress.
func (s *Session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inst != nil {
		s.inst.Interrupt()
	}
}

// take takes the instance away, for end to close.
func (s *Session) take() engine.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	inst := s.inst
	s.inst = nil
	return inst
}

// bury closes the instance, if there still is one, and counts why it was replaced, if it was. It is
// one of the pool's burials, begun under the lock under which end takes instances: so end
// either closes the instance itself, or waits for this before it closes the runtime, which
// would release the instance's memory a second time.
func (s *Session) bury(ctx context.Context, why Reason) error {
	s.mu.Lock()
	inst := s.inst
	s.inst = nil
	if inst != nil {
		s.gen.pool.burials.Add(1)
	}
	s.mu.Unlock()
	if inst == nil {
		return nil
	}
	defer s.gen.pool.burials.Done()
	err := inst.Close(context.WithoutCancel(ctx))
	if why == "" {
		s.gen.module.count.instances(-1)
	} else {
		s.gen.module.count.replace(why)
	}
	return err
}

// join registers a session.
func (p *pool) join(s *Session, limit int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusal != nil {
		return p.refusal
	}
	if len(p.sessions) >= limit {
		return fmt.Errorf("%w: %d sessions are open; close one, or raise Limits.Sessions", ErrLimit, limit)
	}
	p.sessions[s] = struct{}{}
	return nil
}

// leave lets go of a session.
func (p *pool) leave(ctx context.Context, s *Session) {
	s.left.Store(true)
	p.mu.Lock()
	delete(p.sessions, s)
	last := p.ended()
	p.mu.Unlock()
	if last {
		p.end(context.WithoutCancel(ctx))
	}
}

// acquireFor is acquire for a session, which a retired pool still serves.
func (p *pool) acquireFor(ctx context.Context, s *Session) (*slot, error) {
	for {
		if s.left.Load() {
			return nil, p.closedBy()
		}
		taken, err := p.take(ctx, true)
		if err == nil || !errors.Is(err, ErrRetired) { // it waited while the pool was retired
			return taken, err
		}
	}
}
