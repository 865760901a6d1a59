package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// Generation is one binary of a [Module] with its spec: what [Host.Load] made
// first, and what each [Module.Swap] puts in its place. It is safe for concurrent
// use. The module closes it.
//
// Callers that keep something which belongs to the binary, such as the encoding
// that it speaks, call the Generation in place of the Module, and look for the
// new one at [ErrRetired].
type Generation struct {
	module *Module
	number int64
	info   Info
	limits Limits
	sticky bool
	parsed *wasm.Module
	// targets are the exports that can be called.
	targets map[string]*engine.Target
	// spec are the conditions that it was loaded with.
	spec Spec
	prog engine.Program
	pool *pool
	open *openGrants
	// watch is set while the generation may be rolled back.
	watch atomic.Pointer[watch]
	// late is how late its host calls came back.
	late lateness
}

func newGeneration(m *Module, number int64, src engine.Source, spec Spec, grants *openGrants, prog engine.Program, info Info) *Generation {
	info.Generation = number
	g := &Generation{module: m, number: number, info: info, limits: spec.Limits, sticky: spec.Grants.Sticky, parsed: src.Parsed, prog: prog, open: grants}
	g.targets = make(map[string]*engine.Target, len(info.Exports))
	for i, name := range info.Exports {
		g.targets[name] = &engine.Target{Name: name, Index: i}
	}
	shed := func(ctx context.Context, idle []engine.Instance) {
		_ = closeAll(ctx, idle) // what an engine reports of it has no use
		m.count.instances(-len(idle))
	}
	finish := func(ctx context.Context, idle []engine.Instance) error {
		defer m.forget(g)
		g.pool.burials.Wait()
		err := closeAll(ctx, idle)
		m.count.instances(-len(idle))
		return errors.Join(err, prog.Close(ctx), grants.close())
	}
	g.pool = newPool(spec.Limits, finish, shed)
	return g
}

// Name returns the module's name.
func (g *Generation) Name() string { return g.module.name }

// Number counts the generations of a module from 1.
func (g *Generation) Number() int64 { return g.number }

// Info returns what is known about the binary since it was loaded.
func (g *Generation) Info() Info {
	info := g.info
	info.Exports, info.Notes = slices.Clone(info.Exports), slices.Clone(info.Notes)
	info.Links = slices.Clone(info.Links)
	return info
}

// HasExport reports whether the binary has an export that can be called: no
// parameters, and an i32 or nothing as result.
func (g *Generation) HasExport(name string) bool {
	_, ok := g.targets[name]
	return ok
}

// Section returns a copy of the first custom section with that name, or nil.
func (g *Generation) Section(name string) []byte { return slices.Clone(g.parsed.Section(name)) }

// warm makes the first instance, so that one that cannot start is found at load.
func (g *Generation) warm(ctx context.Context) error {
	s, err := g.pool.take(ctx, false)
	if err != nil {
		return fmt.Errorf("host: load module %q: %w", g.module.name, err)
	}
	defer g.pool.release(ctx, s)
	inst, err := g.instantiate(ctx, s, false)
	if err != nil {
		return err
	}
	g.pool.set(s, inst)
	return nil
}

func (g *Generation) instantiate(ctx context.Context, s *slot, sticky bool) (engine.Instance, error) {
	ctx, stop := g.pool.making(ctx, s)
	defer stop(nil)
	ctx, cancel := context.WithTimeout(ctx, g.limits.InitTimeout)
	defer cancel()
	inst, err := g.prog.Instantiate(ctx, sticky)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrClosed) {
			err = &engine.Fault{Kind: TrapCancelled, Detail: "the module was closed", Err: cause}
		}
		return nil, g.failure("", err)
	}
	g.module.count.instances(1)
	return inst, nil
}

// discard closes the slot's instance. What the engine reports when a broken
// instance is closed has no use.
func (g *Generation) discard(ctx context.Context, s *slot, why Reason) {
	if s.session != nil {
		_ = s.session.bury(ctx, why)
		return
	}
	inst := s.inst
	g.pool.set(s, nil)
	_ = inst.Close(context.WithoutCancel(ctx))
	g.module.count.replace(why)
}

// failure turns what an instance reports into an error of this package.
func (g *Generation) failure(export string, err error) error {
	var f *engine.Fault
	if !errors.As(err, &f) {
		return fmt.Errorf("host: module %q export %q: %w", g.module.name, export, err)
	}
	if f.Late != nil {
		g.module.count.late(*f.Late)
		g.late.add(f.Late.By)
	}
	return &TrapError{
		Module: g.module.name, Export: export, Kind: f.Kind,
		Detail: engine.Clean(f.Detail, 2*engine.MaxDetail), ExitCode: f.Code, Err: f.Err,
	}
}

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
		output, err = g.settle(ctx, output, err, t, &s.out)
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
func (g *Generation) settle(ctx context.Context, output []byte, err error, t *engine.Target, out *engine.Outcome) ([]byte, error) {
	switch {
	case err != nil:
		f, ok := errors.AsType[*engine.Fault](err)
		if until, bounded := ctx.Deadline(); ok && f.Kind == TrapDeadline && ctx.Err() == nil && (!bounded || time.Now().Before(until)) {
			f.Detail = fmt.Sprintf("Limits.Timeout is %v: %s", g.limits.Timeout, f.Detail)
		}
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
