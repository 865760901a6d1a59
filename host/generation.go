package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

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
	grants Grants
	parsed *wasm.Module
	// targets are the exports that can be called, the first few in a list too, which
	// is looked through faster than a map.
	targets  map[string]*target
	all, few []target
	// spec are the conditions that it was loaded with.
	spec Spec
	prog program
	pool *pool
	caps *capabilities
	// reached tells that the guest reaches code of the embedder, which may call back.
	reached bool
	// foreign tells that a call may run such code, or what a context or a log handler brings.
	foreign bool
	// watch is set while the generation may be rolled back.
	watch atomic.Pointer[watch]
	// late is how late its host calls came back.
	late lateness
}

func newGeneration(m *Module, number int64, src source, prog program, info Info) *Generation {
	info.Generation = number
	g := &Generation{module: m, number: number, info: info, limits: src.limits, grants: src.grants, parsed: src.parsed, prog: prog, caps: src.caps, reached: src.caps.blocking()}
	g.foreign = g.reached || g.grants.Log || readsMessages(src.parsed) || len(src.links) > 0
	g.all = make([]target, len(info.Exports))
	g.targets = make(map[string]*target, len(info.Exports))
	for i, name := range info.Exports {
		g.all[i].name, g.all[i].index = name, i
		g.targets[name] = &g.all[i]
	}
	g.few = g.all[:min(len(g.all), fewTargets)]
	shed := func(ctx context.Context, idle []instance) {
		_ = closeAll(ctx, idle) // what an engine says about it helps nobody
		m.count.instances.Add(-int64(len(idle)))
	}
	finish := func(ctx context.Context, idle []instance) error {
		defer m.forget(g)
		g.pool.burials.Wait()
		err := closeAll(ctx, idle)
		m.count.instances.Add(-int64(len(idle)))
		return errors.Join(err, prog.close(ctx), src.caps.close())
	}
	g.pool = newPool(src.limits, &m.count, finish, shed)
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

// HasExport tells whether the binary has an export that can be called: no
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

func (g *Generation) instantiate(ctx context.Context, s *slot, sticky bool) (instance, error) {
	if err := s.buried(ctx); err != nil {
		return nil, g.unserved("", err)
	}
	ctx, stop := g.pool.making(ctx, s)
	defer stop(nil)
	ctx, cancel := context.WithTimeout(ctx, g.limits.InitTimeout)
	defer cancel()
	inst, err := g.prog.instantiate(ctx, sticky)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrClosed) {
			err = &fault{kind: TrapCancelled, detail: "the module was closed", err: cause}
		}
		return nil, g.failure("", err)
	}
	g.module.count.instances.Add(1)
	return inst, nil
}

// discard closes the slot's instance. What the engine says about the closing of
// a broken instance helps nobody. Giving a large memory back takes the kernel tens
// of milliseconds, which the caller, whose time is up, does not wait for.
func (g *Generation) discard(ctx context.Context, s *slot, why Replacement) {
	inst := s.inst
	g.pool.set(s, nil)
	bury := func() {
		_ = inst.close(context.WithoutCancel(ctx))
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

// heavy is from how many bytes of memory an instance is closed beside its caller.
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
	var f *fault
	if !errors.As(err, &f) {
		return fmt.Errorf("host: module %q export %q: %w", g.module.name, export, err)
	}
	if f.late != nil {
		g.module.count.late.add(*f.late)
		g.late.add(f.late.by)
	}
	return &TrapError{
		Module: g.module.name, Export: export, Kind: f.kind,
		Detail: clean(f.detail, 2*maxDetail), ExitCode: f.code, Err: f.err,
	}
}

// readsMessages tells whether a module imports what asks the caller for messages.
func readsMessages(m *wasm.Module) bool {
	return slices.ContainsFunc(m.Imports, func(im wasm.Import) bool {
		return im.Module == moduleHost && (im.Name == importMessagesGet || im.Name == importMessagesRead)
	})
}
