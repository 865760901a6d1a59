package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
)

// Host loads modules. It is safe for concurrent use. The caller of New closes it.
type Host struct {
	cfg    Config
	engine engine.Engine
	cache  *compile.DiskCache

	mu      sync.Mutex
	modules map[*Module]struct{}
	closed  bool
}

// New makes a host. It fails when a field of cfg is wrong or the cache folder
// cannot be used.
func New(cfg Config) (*Host, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	cache, err := compile.OpenCache(cfg.CacheDir, cfg.Engine.Name())
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg, cache: cache, modules: map[*Module]struct{}{}}
	h.engine = cfg.Engine.Open(compile.Setup{Cache: cache, Child: cfg.Compile, Logger: cfg.Logger})
	return h, nil
}

// Load checks, compiles and starts a module. Compiling takes a second or two
// for a guest written in Go, unless the cache has it; the context is looked at
// before and after. Cancelling ctx later does not touch the module.
//
// The error is a [*LoadError] when something is wrong with the module, and then
// one of the package's errors is found in it with errors.Is, or a [*TrapError]
// when its first instance did not come to life.
func (h *Host) Load(ctx context.Context, spec Spec) (*Module, error) {
	spec, err := spec.withDefaults(h.cfg.Limits)
	if err != nil {
		return nil, err
	}
	m := newModule(h, spec.Name)
	g, err := h.prepare(ctx, m, spec)
	if err != nil {
		return nil, err
	}
	m.current.Store(g)
	if err := h.adopt(m); err != nil {
		return nil, m.abandon(ctx, err)
	}
	return m, nil
}

// prepare makes a generation of a module, up to its first instance.
func (h *Host) prepare(ctx context.Context, m *Module, spec Spec) (*Generation, error) {
	spec, err := spec.withDefaults(h.cfg.Limits)
	if err != nil {
		return nil, err
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	src, info, err := check(spec)
	if err != nil {
		return nil, err
	}
	if bad := m.lacks(src.Parsed); bad != nil {
		return nil, loadError(spec, *bad)
	}
	src.Logger = h.cfg.Logger
	grants, err := openAll(&src, &spec.Grants, &m.use, h.cfg.Logger, spec.Limits.InputBytes)
	if err != nil {
		return nil, err
	}
	info.Engine = h.cfg.Engine.Name()
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("host: load module %q: %w", src.Name, err), grants.close())
	}
	prog, err := h.compile(ctx, src, spec, &info)
	if err != nil {
		return nil, errors.Join(err, grants.close())
	}
	g := m.add(src, spec, grants, prog, info)
	g.spec = spec.clone()
	g.spec.Wasm = nil
	if err := g.warm(ctx); err != nil {
		_, closeErr := g.pool.close(context.WithoutCancel(ctx))
		return nil, errors.Join(startError(spec, err), closeErr)
	}
	return g, nil
}

// Close closes all modules of the host. It waits for calls in flight until ctx
// is done, and then interrupts or abandons them as [Module.Close] does. Calling it again is fine. Modules that are
// being loaded meanwhile are closed by Load, which then returns [ErrClosed].
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	modules := slices.Collect(maps.Keys(h.modules))
	h.mu.Unlock()
	errs := make([]error, len(modules)+1)
	var wg sync.WaitGroup
	for i, m := range modules {
		wg.Go(func() { errs[i] = m.Close(ctx) })
	}
	wg.Wait()
	errs[len(modules)] = h.engine.Close(context.WithoutCancel(ctx))
	return errors.Join(errs...)
}

func (h *Host) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("host: %w", ErrClosed)
	}
	return nil
}

func (h *Host) adopt(m *Module) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("host: %w", ErrClosed)
	}
	h.modules[m] = struct{}{}
	return nil
}

func (h *Host) forget(m *Module) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.modules, m)
}
