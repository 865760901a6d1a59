package host

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/engine"
)

// The way of a call through a generation. A call costs some tens of nanoseconds, so
// what seldom happens stands apart from it, in functions of its own.

// Call is [Module.Call] on this generation. Once another one has taken its place
// it fails with [ErrRetired].
func (g *Generation) Call(ctx context.Context, export string, input ...[]byte) ([]byte, error) {
	size := engine.SizeOfParts(input)
	s, t, err := g.begin(ctx, export, size)
	if err != nil {
		return nil, err
	}
	s.in.Set(input, size)
	var output []byte
	if g.foreign {
		output, err = g.guarded(ctx, s, t)
	} else { // a defer would cost as much as reading the counter
		output, err = g.serve(ctx, s, t)
		g.pool.release(ctx, s)
	}
	if err != nil || g.watch.Load() != nil {
		g.count(ctx, err)
	}
	return output, err
}

// guarded serves a call that may reach code of the embedder, and gives the slot back. Such
// code can end the goroutine (runtime.Goexit, as a test's Fatal does): the instance is in the middle of a call then,
// and must not be used again.
func (g *Generation) guarded(ctx context.Context, s *slot, t *engine.Target) ([]byte, error) {
	over := false
	defer func() {
		if !over {
			g.abort(ctx, s)
		}
		g.pool.release(ctx, s)
	}()
	output, err := g.serve(ctx, s, t)
	over = true
	return output, err
}

// abort lets go of the instance of a call that did not return.
func (g *Generation) abort(ctx context.Context, s *slot) {
	s.in.Drop()
	if s.inst != nil {
		g.discard(ctx, s, ReplacedAborted)
	}
}

// begin takes a slot for a call that can be made.
func (g *Generation) begin(ctx context.Context, export string, size int) (*slot, *engine.Target, error) {
	t, err := g.target(ctx, export, size)
	if err != nil {
		return nil, nil, err
	}
	s, err := g.pool.take(ctx, false)
	if err != nil {
		return nil, nil, g.unserved(export, err)
	}
	return s, t, nil
}

// fewTargets is how many exports are looked through one by one.
const fewTargets = 6

// target finds an export, or refuses a call that cannot be made.
func (g *Generation) target(ctx context.Context, export string, size int) (*engine.Target, error) {
	var t *engine.Target
	for i := range g.few {
		if g.few[i].Name == export {
			t = &g.few[i]
			break
		}
	}
	if t == nil {
		t = g.targets[export]
	}
	if t == nil || size > g.limits.InputBytes || g.reached && g.open.inside(ctx) {
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
		g.module.count.calls.Add(1)
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

// serve runs a call on a slot that holds its input, on the slot's instance or on a
// new one.
func (g *Generation) serve(ctx context.Context, s *slot, t *engine.Target) ([]byte, error) {
	if s.inst == nil {
		inst, err := g.instantiate(ctx, s, false)
		if err != nil {
			s.in.Drop()
			s.tally.calls++
			return nil, err
		}
		g.pool.set(s, inst)
	}
	output, err := s.call(ctx, s.inst, t)
	if err != nil || s.out.Unusual() {
		if err != nil || s.out.Spent != "" {
			g.discard(ctx, s, because(err, &s.out))
		}
		output, err = g.settle(output, err, t, &s.out)
	}
	return output, err
}

// call runs a call on an instance and counts it.
func (s *slot) call(ctx context.Context, inst engine.Instance, t *engine.Target) ([]byte, error) {
	start := s.tally.begin()
	s.out = engine.Outcome{}
	output, err := inst.Call(ctx, t, &s.in, &s.out)
	s.in.Drop()
	s.tally.end(start, &s.out)
	return output, err
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
