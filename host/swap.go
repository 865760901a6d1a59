package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/engine"
)

// SwapOptions describe when a new generation takes over and when it has to go again.
// The zero value is valid.
type SwapOptions struct {
	// Check is asked about the new generation before any call reaches it, after the test vectors that its binary brings
	// along. It may call the generation; its error ends the swap. Nil is fine.
	Check func(ctx context.Context, g *Generation) error
	// Watch describes when the new generation is rolled back.
	Watch Watch
}

// Watch bounds the failures of a new generation. Zero fields are defaults.
type Watch struct {
	// Calls is how many calls are watched. After them the generation before is
	// closed and there is no way back. Default 100.
	Calls int
	// MinCalls is how many calls must have ended before the rate counts. Default 5, or
	// Calls if that is less.
	MinCalls int
	// MaxFailures is the part of the watched calls that may fail, between 0 and 1.
	// A refusal of the guest is a failure, and so are a trap, also one at the caller's
	// own deadline, and a call of an export that is missing; what the caller cancelled is not. Default 0.5.
	MaxFailures float64
}

// SwapKind is what happened to a generation.
type SwapKind string

// Kinds of swap events.
const (
	// SwapLive means that the generation takes the calls from now on.
	SwapLive SwapKind = "live"
	// SwapRolledBack means that the generation failed too often, and that the one
	// before it takes the calls again.
	SwapRolledBack SwapKind = "rolled_back"
	// SwapSettled means that the generation has proved itself.
	SwapSettled SwapKind = "settled"
)

// SwapEvent describes what happened to a generation.
type SwapEvent struct {
	Module string
	Kind   SwapKind
	// Generation that the event is about, and the one that takes the calls now.
	Generation, Current int64
	// SHA256 of the generation's binary, and of the one that takes the calls now.
	SHA256, CurrentSHA256 string
	// Calls and Failures are those that were watched. Reason is the last error of a
	// generation that was rolled back.
	Calls, Failures int64
	Reason          string
}

// watch counts what a new generation does.
type watch struct {
	Watch

	calls, failures atomic.Int64
	// last is the latest failure, there before it is counted.
	last atomic.Pointer[error]
	// over is set when the watch ends.
	over atomic.Bool
}

func (w Watch) withDefaults() (Watch, error) {
	w.Calls, w.MaxFailures = cmp.Or(w.Calls, 100), cmp.Or(w.MaxFailures, 0.5)
	w.MinCalls = cmp.Or(w.MinCalls, min(5, w.Calls))
	switch {
	case w.Calls < 0:
		return w, fmt.Errorf("Watch.Calls %d is negative; use 0 for the default", w.Calls)
	case w.MinCalls < 0 || w.MinCalls > w.Calls:
		return w, fmt.Errorf("Watch.MinCalls %d is not between 0 and Watch.Calls (%d)", w.MinCalls, w.Calls)
	case !(w.MaxFailures > 0 && w.MaxFailures <= 1):
		return w, fmt.Errorf("Watch.MaxFailures %v is not between 0 and 1", w.MaxFailures)
	}
	return w, nil
}

// Swap puts another binary, or another spec, in the place of the module's while it
// is in use. The new generation is loaded, probed and asked to describe itself; if
// anything about it is wrong, the error says so and nothing has changed. Then new
// calls, and those that wait for an instance, go to it; calls in progress end on
// the generation before, which stays in reserve while the new one is watched, and
// is closed after that, or takes over again when the new one fails too often.
//
// A spec in which at most Name, Path, Wasm and SHA256 are set names only another binary: Links,
// Require, Limits and Grants stay as they are. As soon as one of these is set, all of them are taken from
// the spec, and what is zero in it is the default, or not granted. To change one condition and keep the others,
// change what [Module.Spec] returns.
//
// A binary that lacks an export which was called on the generation in use, or which its Spec.Require
// names, is refused with [ErrExport].
//
// Spec.Name is that of the module, as given or as shown, or empty. One swap at a time: others wait. The
// error is that of [Host.Load], or why the generation in use stays.
func (m *Module) Swap(ctx context.Context, spec Spec, opts SwapOptions) (*Generation, error) {
	w, err := opts.Watch.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("host: swap module %q: %w", m.name, err)
	}
	if spec.Name == "" || spec.Name == m.name {
		spec.Name = m.given
	}
	if spec.Name != m.given {
		return nil, fmt.Errorf("host: swap module %q: Spec.Name is %q; leave it empty, or load that module in addition", m.name, engine.Clean(spec.Name, engine.MaxName))
	}
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("host: swap module %q: waiting for another swap: %w", m.name, ctx.Err())
	}
	defer func() { <-m.turn }()
	spec = m.completed(spec)
	g, err := m.host.prepare(ctx, m, spec)
	if err != nil {
		return nil, err
	}
	if err := m.admit(ctx, g, opts); err != nil {
		_, closeErr := g.pool.close(context.WithoutCancel(ctx))
		return nil, errors.Join(err, closeErr)
	}
	return m.replace(ctx, g, w)
}

// admit probes the new generation, and asks Check.
func (m *Module) admit(ctx context.Context, g *Generation, opts SwapOptions) error {
	err := g.probe(ctx)
	if err == nil && opts.Check != nil {
		err = opts.Check(ctx, g)
	}
	if err != nil {
		return fmt.Errorf("host: swap module %q: the generation in use stays: %w", m.name, err)
	}
	return nil
}

// replace moves new calls over.
func (m *Module) replace(ctx context.Context, g *Generation, w Watch) (*Generation, error) {
	g.watch.Store(&watch{Watch: w})
	g.inherit(m.Current())
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		_, err := g.pool.close(context.WithoutCancel(ctx))
		return nil, errors.Join(fmt.Errorf("host: swap module %q: %w", m.name, ErrClosed), err)
	}
	before, older := m.current.Load(), m.standby
	before.watch.Store(nil)
	m.standby = before
	m.current.Store(g)
	before.pool.park() // before anybody can revive it
	m.mu.Unlock()
	m.count.change(func(s *Stats) { s.Swaps++ })
	before.pool.shedAll(ctx)
	if older != nil {
		older.pool.retire(ctx)
	}
	m.tell(SwapEvent{Kind: SwapLive, Generation: g.number, SHA256: g.info.SHA256})
	return g, nil
}

// judge counts a call of a generation that is being watched, and settles it or
// rolls it back. The call that makes the rate count may be one that went well.
func (g *Generation) judge(ctx context.Context, w *watch, err error) {
	if blameless(ctx, err) {
		return
	}
	if err != nil {
		w.fail(err)
	}
	g.weigh(ctx, w, w.calls.Add(1))
}

// fail counts a failure.
func (w *watch) fail(err error) {
	w.last.Store(&err)
	w.failures.Add(1)
}

// weigh ends the watch when the calls so far are enough for that.
func (g *Generation) weigh(ctx context.Context, w *watch, calls int64) {
	failures := w.failures.Load()
	switch {
	case calls >= int64(w.MinCalls) && float64(failures) > w.MaxFailures*float64(calls):
		g.end(ctx, w, SwapRolledBack, (*w.last.Load()).Error())
	case calls >= int64(w.Calls):
		g.end(ctx, w, SwapSettled, "")
	}
}

// end ends the watch, once, and reports whether it was this call that did.
func (g *Generation) end(ctx context.Context, w *watch, kind SwapKind, reason string) bool {
	if w.over.Swap(true) {
		return false
	}
	return g.module.conclude(ctx, g, SwapEvent{
		Kind: kind, Generation: g.number, SHA256: g.info.SHA256, Calls: w.calls.Load(), Failures: w.failures.Load(), Reason: reason,
	})
}

// Fault counts a failure that Call could not see: the guest returned, and its output
// is of no use to the caller. It may roll the generation back, as a failed call
// may. It does nothing when the generation is not watched.
func (g *Generation) Fault(ctx context.Context, err error) {
	if w := g.watch.Load(); w != nil && err != nil {
		w.fail(err)
		g.weigh(ctx, w, w.calls.Load())
	}
}

// RollBack ends the watch at once: the generation before takes the calls again. It
// reports false, and does nothing, when the generation does not take the calls or its
// watch is over. OnSwap receives reason.
func (g *Generation) RollBack(ctx context.Context, reason string) bool {
	w := g.watch.Load()
	return w != nil && g.end(ctx, w, SwapRolledBack, reason)
}

// blameless reports whether an error says nothing about the generation. A guest that ran
// until a deadline is to blame, whosever deadline it was: callers who do not wait as
// long as Limits.Timeout would else never get rid of one that hangs.
func blameless(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	if trap, ok := errors.AsType[*TrapError](err); ok {
		return trap.Kind == TrapCancelled || trap.Kind == TrapInit && ctx.Err() != nil
	}
	return ctx.Err() != nil || errors.Is(err, ErrClosed)
}

// conclude ends the watch over g, if g still takes the calls.
func (m *Module) conclude(ctx context.Context, g *Generation, event SwapEvent) bool {
	m.mu.Lock()
	standby := m.standby
	if m.closed || standby == nil || m.current.Load() != g {
		m.mu.Unlock()
		return false
	}
	m.standby = nil
	g.watch.Store(nil)
	leaving := standby
	if event.Kind == SwapRolledBack {
		leaving = g
		standby.pool.revive()
		m.current.Store(standby)
	}
	m.mu.Unlock()
	if event.Kind == SwapRolledBack {
		m.count.change(func(s *Stats) { s.Rollbacks++ })
	}
	leaving.pool.retire(ctx)
	m.tell(event)
	return true
}

// tell logs an event and passes it on.
func (m *Module) tell(e SwapEvent) {
	current := m.Current()
	e.Module, e.Current, e.CurrentSHA256 = m.name, current.number, current.info.SHA256
	if e.Kind == SwapRolledBack {
		m.host.cfg.Logger.Warn("generation rolled back", "module", m.name, "generation", e.Generation,
			"calls", e.Calls, "failures", e.Failures, "reason", e.Reason, "from_sha256", e.SHA256, "to_sha256", e.CurrentSHA256)
	}
	m.host.cfg.OnSwap(e)
}
