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
	targets map[string]*target
	few     []target
	prog    program
	pool    *pool
	caps    *capabilities
	// watch is set while the generation may be rolled back.
	watch atomic.Pointer[watch]
}

func newGeneration(m *Module, number int64, src source, prog program, info Info) *Generation {
	info.Generation = number
	g := &Generation{module: m, number: number, info: info, limits: src.limits, grants: src.grants, parsed: src.parsed, prog: prog, caps: src.caps}
	g.few = make([]target, len(info.Exports))
	g.targets = make(map[string]*target, len(info.Exports))
	for i, name := range info.Exports {
		g.few[i] = target{name: name, index: i}
		g.targets[name] = &g.few[i]
	}
	g.few = g.few[:min(len(g.few), fewTargets)]
	shed := func(ctx context.Context, idle []instance) {
		_ = closeAll(ctx, idle) // what an engine says about it helps nobody
		m.count.instance(-int64(len(idle)), 0)
	}
	finish := func(ctx context.Context, idle []instance) error {
		defer m.forget(g)
		g.pool.burials.Wait()
		err := closeAll(ctx, idle)
		m.count.instance(-int64(len(idle)), 0)
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

// Call is [Module.Call] on this generation. Once another one has taken its place
// it fails with [ErrRetired].
func (g *Generation) Call(ctx context.Context, export string, input []byte) ([]byte, error) {
	s, t, err := g.begin(ctx, export, len(input))
	if err != nil {
		return nil, err
	}
	defer g.pool.release(ctx, s)
	s.in.set(input)
	return g.serve(ctx, s, t)
}

// begin takes a slot for a call that can be made.
func (g *Generation) begin(ctx context.Context, export string, size int) (*slot, *target, error) {
	t, err := g.target(export, size)
	if err != nil {
		return nil, nil, err
	}
	if g.caps.inside(ctx) {
		return nil, nil, fmt.Errorf("host: module %q export %q: %w", g.module.name, t.name, ErrReentry)
	}
	s, err := g.pool.take(ctx, false)
	if err != nil {
		return nil, nil, g.unserved(export, err)
	}
	return s, t, nil
}

// serve runs a call on a slot that holds its input.
func (g *Generation) serve(ctx context.Context, s *slot, t *target) ([]byte, error) {
	start := s.tally.begin()
	s.out = outcome{}
	err := g.run(ctx, s, t)
	s.in.drop()
	s.tally.end(start, &s.out)
	if err != nil {
		g.module.count.fail(err)
	}
	if w := g.watch.Load(); w != nil {
		g.judge(ctx, w, err)
	}
	if err != nil {
		return nil, err
	}
	output := s.out.output
	s.out.output = nil
	return output, nil
}

// fewTargets is how many exports are looked through one by one.
const fewTargets = 6

// target finds an export, or refuses a call that cannot be made.
func (g *Generation) target(export string, size int) (*target, error) {
	var t *target
	for i := range g.few {
		if g.few[i].name == export {
			t = &g.few[i]
			break
		}
	}
	if t == nil {
		t = g.targets[export]
	}
	if t == nil {
		return nil, fmt.Errorf("host: module %q export %q: %w", g.module.name, clean(export, maxName), ErrNoExport)
	}
	if size > g.limits.InputBytes {
		return nil, fmt.Errorf("host: module %q export %q: %w: %d bytes of %d", g.module.name, export, ErrInputTooLarge, size, g.limits.InputBytes)
	}
	return t, nil
}

func (g *Generation) unserved(export string, err error) error {
	return fmt.Errorf("host: module %q export %q: waiting for an instance: %w", g.module.name, export, err)
}

// run calls on the slot's instance, or on a new one.
func (g *Generation) run(ctx context.Context, s *slot, t *target) error {
	if s.inst == nil {
		inst, err := g.instantiate(ctx, s)
		if err != nil {
			return err
		}
		g.pool.set(s, inst)
	}
	out := &s.out
	err := s.inst.call(ctx, g.limits.Timeout, t, &s.in, out)
	if err != nil || out.spent {
		g.discard(ctx, s)
	}
	if err == nil && out.code == 0 && out.text == "" {
		return nil
	}
	return g.failed(t, out, err)
}

// failed is the error of a call.
func (g *Generation) failed(t *target, out *outcome, err error) error {
	if err != nil {
		return g.failure(t.name, err)
	}
	return &GuestError{Module: g.module.name, Export: t.name, Code: out.code, Message: clean(out.text, maxMessage)}
}

// warm makes the first instance, so that one that cannot start is found at load.
func (g *Generation) warm(ctx context.Context) error {
	s, err := g.pool.take(ctx, false)
	if err != nil {
		return fmt.Errorf("host: load module %q: %w", g.module.name, err)
	}
	defer g.pool.release(ctx, s)
	inst, err := g.instantiate(ctx, s)
	if err != nil {
		return err
	}
	g.pool.set(s, inst)
	return nil
}

func (g *Generation) instantiate(ctx context.Context, s *slot) (instance, error) {
	if err := s.buried(ctx); err != nil {
		return nil, g.unserved("", err)
	}
	ctx, stop := g.pool.making(ctx, s)
	defer stop(nil)
	ctx, cancel := context.WithTimeout(ctx, g.limits.InitTimeout)
	defer cancel()
	inst, err := g.prog.instantiate(ctx)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrClosed) {
			err = &fault{kind: TrapCancelled, detail: "the module was closed", err: cause}
		}
		return nil, g.failure("", err)
	}
	g.module.count.instance(1, 0)
	return inst, nil
}

// discard closes the slot's instance. What the engine says about the closing of
// a broken instance helps nobody. Giving a large memory back takes the kernel tens
// of milliseconds, which the caller, whose time is up, does not wait for.
func (g *Generation) discard(ctx context.Context, s *slot) {
	inst := s.inst
	g.pool.set(s, nil)
	bury := func() {
		_ = inst.close(context.WithoutCancel(ctx))
		g.module.count.instance(-1, 1)
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
	return &TrapError{
		Module: g.module.name, Export: export, Kind: f.kind,
		Detail: clean(f.detail, 2*maxDetail), ExitCode: f.code, Err: f.err,
	}
}
