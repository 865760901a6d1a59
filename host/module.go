package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Module is a loaded module. It is safe for concurrent use. Close it, or its
// host, when it is not needed any more.
type Module struct {
	host *Host
	// given is the name of the Spec, and name the same fit for errors and logs.
	given, name string
	count       counters
	// use counts what the guests of all generations did with their grants.
	use engine.Usage
	// current takes the calls.
	current atomic.Pointer[Generation]
	// turn is held during a swap.
	turn chan struct{}

	mu sync.Mutex
	// standby is the generation before current, while it may have to come back.
	standby *Generation
	// alive are those that are not closed to their end.
	alive  map[*Generation]struct{}
	made   int64
	closed bool
	// why is set when the module was closed by itself.
	why error
}

func newModule(h *Host, given string) *Module {
	return &Module{host: h, given: given, name: engine.Clean(given, engine.MaxName), turn: make(chan struct{}, 1), alive: map[*Generation]struct{}{}}
}

// add makes a generation of the module. Once the module is closed the generation
// is, too.
func (m *Module) add(src engine.Source, spec Spec, grants *openGrants, prog engine.Program, info Info) *Generation {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	g := newGeneration(m, m.made, src, spec, grants, prog, info)
	m.alive[g] = struct{}{}
	if m.closed {
		g.pool.refuse(m.reason())
	}
	return g
}

// reason is why the module is closed. It is locked.
func (m *Module) reason() error { return cmp.Or(m.why, ErrClosed) }

// shut closes the module by itself, after the calls in flight.
func (m *Module) shut(ctx context.Context, why error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed, m.why = true, why
	alive := slices.Collect(maps.Keys(m.alive))
	m.mu.Unlock()
	m.host.cfg.Logger.WarnContext(ctx, "module closed", "module", m.name, "reason", why.Error())
	for _, g := range alive {
		g.pool.shut(ctx, why)
	}
}

// forget drops a generation that is closed to its end.
func (m *Module) forget(g *Generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.alive, g)
	m.count.change(g.pool.addTo)
	if m.closed && len(m.alive) == 0 {
		m.host.forget(m)
	}
}

// Name returns the module's name as given in its Spec, escaped.
func (m *Module) Name() string { return m.name }

// Current returns the generation that takes the calls now.
func (m *Module) Current() *Generation { return m.current.Load() }

// Info returns what is known about the current generation since it was loaded.
func (m *Module) Info() Info { return m.Current().Info() }

// Stats returns the counters of the module, all its generations together, at this
// moment.
func (m *Module) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.count.stats()
	for g := range m.alive {
		g.pool.addTo(&s)
	}
	s.Denied, s.Uses = m.use.Denied.Load(), m.use.All()
	return s
}

// HasExport reports whether the module has an export that can be called: no
// parameters, and an i32 or nothing as result.
func (m *Module) HasExport(name string) bool { return m.Current().HasExport(name) }

// Section returns a copy of the first custom section with that name, or nil.
func (m *Module) Section(name string) []byte { return m.Current().Section(name) }

// Call runs an export on an instance of its own and returns what it wrote as
// output, which is never nil without an error and belongs to the caller. It
// waits for a free instance; ctx bounds the waiting, and together with
// Limits.Timeout the running. Several inputs are parts of one, put together where the guest wants
// it and not before. The guest does not change input. A call that waits
// while the module is swapped goes to the new generation.
//
// Errors: a [*GuestError], a [*TrapError], [ErrClosed], [ErrNoExport],
// [ErrInputTooLarge], [ErrReentry], [ErrEngine], or the context's error when it ended while
// waiting.
func (m *Module) Call(ctx context.Context, export string, input ...[]byte) ([]byte, error) {
	for {
		out, err := m.Current().Call(ctx, export, input...)
		if err == nil || !errors.Is(err, ErrRetired) {
			return out, err
		}
	}
}

// abandon closes a module that was not handed out and returns why.
func (m *Module) abandon(ctx context.Context, why error) error {
	if err := m.Close(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// Close waits for calls in flight and frees everything, sessions included. When
// ctx ends first it interrupts them, waits for a second at most, and returns the context's
// error, with how many came back and how many did not: those are abandoned, and the
// last of them frees what is left. Calls after Close fail with [ErrClosed]; closing again
// is fine. From code that its own guest called, with the context that this got, it
// would wait for itself: it fails with [ErrReentry] there, and the module stays open.
func (m *Module) Close(ctx context.Context) error {
	if g := m.current.Load(); g != nil && g.open.inside(ctx) {
		return fmt.Errorf("host: close module %q: a call of it is in progress here; close it when that has returned: %w", m.name, ErrReentry)
	}
	m.mu.Lock()
	m.closed = true
	alive := slices.Collect(maps.Keys(m.alive))
	m.mu.Unlock()
	var sum unfinished
	errs := make([]error, len(alive))
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, g := range alive {
		wg.Go(func() {
			n, err := g.pool.close(ctx)
			mu.Lock()
			defer mu.Unlock()
			sum.interrupted, sum.abandoned = sum.interrupted+n.interrupted, sum.abandoned+n.abandoned
			errs[i] = err
		})
	}
	wg.Wait()
	err := firstOf(errs)
	if err == nil {
		return nil
	}
	return fmt.Errorf("host: close module %q: %s%w", m.name, sum, err)
}

// String reports what became of the calls in flight, empty when there were none.
func (u unfinished) String() string {
	var out string
	if u.interrupted > 0 {
		out = fmt.Sprintf("%d calls in flight were interrupted: ", u.interrupted)
	}
	if u.abandoned > 0 {
		out += fmt.Sprintf("%d calls in flight were abandoned, which did not come back when they were interrupted: ", u.abandoned)
	}
	return out
}

// firstOf joins different errors, and says the same one once.
func firstOf(errs []error) error {
	var out []error
	for _, err := range errs {
		if err == nil {
			continue
		}
		if len(out) == 0 || err.Error() != out[0].Error() {
			out = append(out, err)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return errors.Join(out...)
}
