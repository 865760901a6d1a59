package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// Module is a loaded module. It is safe for concurrent use. Close it, or its
// host, when it is not needed any more.
type Module struct {
	name   string
	info   Info
	limits Limits
	parsed *wasm.Module
	// exports are those that can be called.
	exports map[string]struct{}
	prog    program
	pool    *pool
	count   counters
}

func newModule(src source, prog program, info Info, forget func(*Module)) *Module {
	m := &Module{name: src.name, info: info, limits: src.limits, parsed: src.parsed, prog: prog}
	m.exports = make(map[string]struct{}, len(info.Exports))
	for _, name := range info.Exports {
		m.exports[name] = struct{}{}
	}
	m.pool = newPool(src.limits.Instances, func(ctx context.Context, idle []instance) error {
		defer forget(m)
		err := closeAll(ctx, idle)
		m.count.instance(-int64(len(idle)), 0)
		return errors.Join(err, prog.close(ctx))
	})
	return m
}

// Name returns the module's name as given in its Spec, escaped.
func (m *Module) Name() string { return m.name }

// Info returns what is known about the module since it was loaded.
func (m *Module) Info() Info {
	info := m.info
	info.Exports = slices.Clone(info.Exports)
	return info
}

// Stats returns the counters of the module at this moment.
func (m *Module) Stats() Stats { return m.count.stats() }

// HasExport tells whether the module has an export that can be called: no
// parameters, and an i32 or nothing as result.
func (m *Module) HasExport(name string) bool {
	_, ok := m.exports[name]
	return ok
}

// Section returns a copy of the first custom section with that name, or nil.
func (m *Module) Section(name string) []byte { return slices.Clone(m.parsed.Section(name)) }

// Call runs an export on an instance of its own and returns what it wrote as
// output, which is never nil without an error and belongs to the caller. It
// waits for a free instance; ctx bounds the waiting, and together with
// Limits.Timeout the running. The guest does not change input.
//
// Errors: a [*GuestError], a [*TrapError], [ErrClosed], [ErrNoExport],
// [ErrInputTooLarge], [ErrEngine], or the context's error when it ended while
// waiting.
func (m *Module) Call(ctx context.Context, export string, input []byte) ([]byte, error) {
	if !m.HasExport(export) {
		return nil, fmt.Errorf("host: module %q export %q: %w", m.name, clean(export, maxName), ErrNoExport)
	}
	if len(input) > m.limits.InputBytes {
		return nil, fmt.Errorf("host: module %q export %q: %w: %d bytes of %d", m.name, export, ErrInputTooLarge, len(input), m.limits.InputBytes)
	}
	s, err := m.pool.acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("host: module %q export %q: waiting for an instance: %w", m.name, export, err)
	}
	defer m.pool.release(ctx, s)
	start := m.count.begin()
	out, err := m.run(ctx, s, export, input)
	m.count.end(start, &out, err)
	if err != nil {
		return nil, err
	}
	return out.output, nil
}

// run calls on the slot's instance, or on a new one.
func (m *Module) run(ctx context.Context, s *slot, export string, input []byte) (outcome, error) {
	if s.inst == nil {
		if err := m.instantiate(ctx, s); err != nil {
			return outcome{}, err
		}
	}
	out, err := s.inst.call(ctx, m.limits.Timeout, export, input)
	if err != nil || out.spent {
		m.discard(ctx, s)
	}
	if err != nil {
		return out, m.failure(export, err)
	}
	if out.code != 0 || out.text != "" {
		return out, &GuestError{Module: m.name, Export: export, Code: out.code, Message: clean(out.text, maxMessage)}
	}
	return out, nil
}

// warm makes the first instance, so that one that cannot start is found at load.
func (m *Module) warm(ctx context.Context) error {
	s, err := m.pool.acquire(ctx)
	if err != nil {
		return fmt.Errorf("host: load module %q: %w", m.name, err)
	}
	defer m.pool.release(ctx, s)
	return m.instantiate(ctx, s)
}

func (m *Module) instantiate(ctx context.Context, s *slot) error {
	ctx, stop := m.pool.making(ctx, s)
	defer stop(nil)
	ctx, cancel := context.WithTimeout(ctx, m.limits.InitTimeout)
	defer cancel()
	inst, err := m.prog.instantiate(ctx)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrClosed) {
			err = &fault{kind: TrapCancelled, detail: "the module was closed", err: cause}
		}
		return m.failure("", err)
	}
	m.pool.set(s, inst)
	m.count.instance(1, 0)
	return nil
}

// discard closes the slot's instance. What the engine says about the closing of
// a broken instance helps nobody.
func (m *Module) discard(ctx context.Context, s *slot) {
	inst := s.inst
	m.pool.set(s, nil)
	_ = inst.close(context.WithoutCancel(ctx))
	m.count.instance(-1, 1)
}

// failure turns what an instance reports into an error of this package.
func (m *Module) failure(export string, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		return fmt.Errorf("host: module %q export %q: %w", m.name, export, err)
	}
	return &TrapError{Module: m.name, Export: export, Kind: f.kind, Detail: clean(f.detail, 2*maxDetail), ExitCode: f.code, Err: f.err}
}

// abandon closes a module that was not handed out and returns why.
func (m *Module) abandon(ctx context.Context, why error) error {
	if err := m.Close(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// Close waits for calls in flight and frees everything. When ctx ends first it
// interrupts them, returns the context's error, and the last of them frees
// what is left. Calls after Close fail with [ErrClosed]; closing again is fine.
func (m *Module) Close(ctx context.Context) error {
	n, err := m.pool.close(ctx)
	switch {
	case err == nil:
		return nil
	case n > 0:
		return fmt.Errorf("host: close module %q: %d calls in flight were interrupted: %w", m.name, n, err)
	}
	return fmt.Errorf("host: close module %q: %w", m.name, err)
}
