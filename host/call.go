package host

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Call is [Module.Call] on this generation. Once another one has taken its place
// it fails with [ErrRetired].
func (g *Generation) Call(ctx context.Context, export string, input ...[]byte) ([]byte, error) {
	size := engine.SizeOfParts(input)
	t, err := g.target(ctx, export, size)
	if err != nil {
		return nil, err
	}
	s, err := g.pool.take(ctx, false)
	if err != nil {
		return nil, g.unserved(export, err)
	}
	s.in.Set(input, size)
	over := false
	defer func() { g.over(ctx, s, over) }()
	output, err := g.serve(ctx, s, t)
	over = true
	return output, err
}

// over ends a call and gives its slot back. Code of the embedder that the call reached can have ended the goroutine
// (runtime.Goexit, as a test's Fatal does): the instance is in the middle of the call then, and must not be used again.
func (g *Generation) over(ctx context.Context, s *slot, returned bool) {
	s.in.Drop()
	if !returned && (s.inst != nil || s.session != nil) {
		g.discard(ctx, s, ReplacedAborted)
	}
	s.session = nil
	g.pool.release(ctx, s)
}

// serve runs a call on a slot that holds its input: on the instance of a session, on the slot's own, or on a new one.
func (g *Generation) serve(ctx context.Context, s *slot, t *engine.Target) ([]byte, error) {
	inst, err := s.inst, error(nil)
	if s.session != nil {
		inst, err = s.session.instance()
	} else if inst == nil {
		inst, err = g.instantiate(ctx, s, false)
		g.pool.set(s, inst)
	}
	if err != nil {
		return nil, g.missing(ctx, s, t, err)
	}
	start := s.tally.begin()
	s.out = engine.Outcome{}
	output, err := inst.Call(ctx, t, &s.in, &s.out)
	s.tally.end(start, &s.out)
	if err != nil || s.out.Unusual() {
		if err != nil || s.out.Spent != "" {
			g.discard(ctx, s, because(err, &s.out))
		}
		output, err = g.settle(output, err, t, &s.out)
	}
	if err != nil || g.watch.Load() != nil {
		g.count(ctx, err)
	}
	return output, err
}

// missing counts a call for which there is no instance, and returns why.
func (g *Generation) missing(ctx context.Context, s *slot, t *engine.Target, err error) error {
	if s.session != nil {
		return fmt.Errorf("host: module %q export %q: %w", g.module.name, t.Name, err)
	}
	s.tally.calls++
	g.count(ctx, err)
	return err
}

// target finds an export, or refuses a call that cannot be made.
func (g *Generation) target(ctx context.Context, export string, size int) (*engine.Target, error) {
	t := g.targets[export]
	if t == nil || size > g.limits.InputBytes || g.open.inside(ctx) {
		return nil, g.refused(ctx, t, export, size)
	}
	if !t.Called.Load() {
		t.Called.Store(true)
	}
	return t, nil
}

// refused explains why a call cannot be made. One of an export that is missing is a failure of the generation.
func (g *Generation) refused(ctx context.Context, t *engine.Target, export string, size int) error {
	switch {
	case t == nil:
		err := fmt.Errorf("host: module %q export %q: %w", g.module.name, engine.Clean(export, engine.MaxName), ErrNoExport)
		g.module.count.change(func(s *Stats) { s.Calls++ })
		g.count(ctx, err)
		return err
	case size > g.limits.InputBytes:
		return fmt.Errorf("host: module %q export %q: %w: %d bytes of %d", g.module.name, export, ErrInputTooLarge, size, g.limits.InputBytes)
	}
	return fmt.Errorf("host: module %q export %q: %w", g.module.name, t.Name, ErrReentry)
}

func (g *Generation) unserved(export string, err error) error {
	return fmt.Errorf("host: module %q export %q: waiting for an instance: %w", g.module.name, export, err)
}

// settle reports whether a call has succeeded, if that is not plain.
func (g *Generation) settle(output []byte, err error, t *engine.Target, out *engine.Outcome) ([]byte, error) {
	switch {
	case err != nil:
		return nil, g.failure(t.Name, err)
	case out.Code != 0 || out.Text != "":
		return nil, &GuestError{Module: g.module.name, Export: t.Name, Code: out.Code, Message: engine.Clean(out.Text, engine.MaxMessage)}
	}
	return output, nil
}

// count counts a call that failed, or one of a generation that is watched.
func (g *Generation) count(ctx context.Context, err error) {
	if err != nil {
		g.module.count.fail(err)
		g.overrun(ctx)
	}
	if w := g.watch.Load(); w != nil {
		g.judge(ctx, w, err)
	}
}
