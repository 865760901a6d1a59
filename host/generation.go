package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

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
	if err := s.buried(ctx); err != nil {
		return nil, g.unserved("", err)
	}
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
// instance is closed has no use. Giving a large memory back takes the kernel tens
// of milliseconds, which the caller, whose time is up, does not wait for.
func (g *Generation) discard(ctx context.Context, s *slot, why Replacement) {
	if s.session != nil {
		_ = s.session.bury(ctx, why)
		return
	}
	inst := s.inst
	g.pool.set(s, nil)
	bury := func() {
		_ = inst.Close(context.WithoutCancel(ctx))
		g.module.count.replace(why)
	}
	if w, ok := inst.(weighty); !ok || w.weight() < heavy {
		bury()
		return
	}
	grave := make(chan struct{})
	s.grave = grave
	g.pool.burials.Go(func() {
		bury()
		close(grave)
	})
}

// heavy is from how many bytes of memory an instance is closed in a goroutine of its own.
const heavy = 16 << 20

// weighty is an instance that knows how large its memory is.
type weighty interface{ weight() int }

// buried waits until the slot's last instance is gone.
func (s *slot) buried(ctx context.Context) error {
	if s.grave == nil {
		return nil
	}
	select {
	case <-s.grave:
		s.grave = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
