package native

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// A module that the rewriter does not know runs without being metered: the engine
// looks at the context at each round of a loop, and a listener does at each call,
// because the engine alone would not stop a recursion. Both are slow, each instance
// runs one call, and fuel is not counted. Threads stay off: a guest that waits for
// another thread could not be stopped at all.

// rewrite meters modules that belong together, or explains why that cannot be done: a
// runtime either meters all of them or watches all of them.
func rewrite(modules []*wasm.Module) (_ []*meter.Result, unmetered string, err error) {
	opts := meterOptions()
	out := make([]*meter.Result, len(modules))
	for n, m := range modules {
		out[n], err = meter.Rewrite(m, opts)
		if errors.Is(err, meter.ErrUnsupported) {
			unmetered = strings.TrimPrefix(err.Error(), "meter: ")
			out, err = bound(modules)
			return out, unmetered, err
		}
		if err != nil {
			return nil, "", err
		}
	}
	return out, "", nil
}

func meterOptions() meter.Options {
	return meter.Options{RefillModule: moduleNative, RefillName: importRefill, MaxTable: engine.MaxTableElements}
}

// bound prepares modules that run without being metered. Without the rewriter's
// exports their globals cannot be reset.
func bound(modules []*wasm.Module) ([]*meter.Result, error) {
	out := make([]*meter.Result, len(modules))
	for n, m := range modules {
		bin, err := meter.Bound(m, engine.MaxTableElements)
		if err != nil {
			return nil, err
		}
		out[n] = &meter.Result{Wasm: bin, Stateful: true}
	}
	return out, nil
}

// engineConfig is that of the runtime.
func (p *nativeProgram) engineConfig() wazero.RuntimeConfig {
	mode := p.mode()
	return wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false).WithCompilationCache(p.cache).
		WithMemoryLimitPages(uint32(p.Limits.MemoryPages)). // between 17 and 65536
		WithCoreFeatures(mode.Features).WithCloseOnContextDone(mode.Closing)
}

// mode is how the program's modules are compiled.
func (p *nativeProgram) mode() compile.CompileMode {
	features := api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst |
		experimental.CoreFeaturesExceptionHandling
	if p.unmetered == "" {
		return compile.CompileMode{Features: features | experimental.CoreFeaturesThreads}
	}
	return compile.CompileMode{Features: features | experimental.CoreFeaturesTypedFunctionReferences, Closing: true, Listens: compile.ListensAll}
}

// Metered implements program.
func (p *nativeProgram) Metered() (bool, string) {
	if p.unmetered == "" {
		return true, ""
	}
	return false, "is not metered: " + p.unmetered + "; deadlines close the instance; fuel is not counted"
}

// watched makes the guest that is compiled with the context look at the deadline
// whenever it calls a function.
func (p *nativeProgram) watched(ctx context.Context) context.Context {
	if p.unmetered == "" {
		return ctx
	}
	return withWatcher(ctx)
}

// withWatcher makes modules that are compiled with the context call a watcher whenever a function is called.
func withWatcher(ctx context.Context) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, experimental.FunctionListenerFactoryFunc(
		func(api.FunctionDefinition) experimental.FunctionListener { return watcher{} }))
}

// watcher ends a guest when its call must not continue.
type watcher struct{}

// Before implements experimental.FunctionListener.
func (watcher) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	i := nativeCaller(ctx)
	if f := i.ended(); f != nil {
		i.Fail(f)
	}
}

// After implements experimental.FunctionListener.
func (watcher) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort implements experimental.FunctionListener.
func (watcher) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// callBounded is callFunction for a guest that is not metered.
func (i *nativeInstance) callBounded(ctx context.Context, f *function, in *engine.Input, out *engine.Outcome) ([]byte, error) {
	ctx, done := i.bounded(ctx, i.prog.Limits.Timeout)
	defer done()
	if i.mems.guest.memory != nil && !i.sticky {
		return i.callPinned(ctx, f, in, out)
	}
	return i.callFunction(ctx, f, in, out)
}

// bounded makes the context of a call that is not metered: the engine watches it
// from a goroutine of its own until the call returns.
func (i *nativeInstance) bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, interrupt := context.WithCancelCause(ctx)
	i.cancel.Store(&interrupt)
	if i.stop.Load() {
		interrupt(engine.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, func() { cancel(); interrupt(nil) }
}

// running is the context that the engine gets. Its goroutine may look at it when the
// next call has begun, so it is not the one that the instance uses again.
func (i *nativeInstance) running() context.Context {
	if i.prog.unmetered == "" {
		return &i.context
	}
	return context.WithValue(i.context.Context, instanceKey{}, i)
}

// ended explains why a call that is not metered must not continue, nil if it may.
func (i *nativeInstance) ended() *engine.Fault {
	if i.prog.unmetered == "" {
		return nil
	}
	switch err := i.context.Err(); {
	case i.stop.Load():
		return i.closed()
	case err != nil:
		return i.stopped(err)
	}
	return nil
}
