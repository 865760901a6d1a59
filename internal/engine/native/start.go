package native

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/files"
	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// start instantiates the kernel and the guest, linked to each other.
func (i *nativeInstance) start(ctx context.Context) error {
	p := i.prog
	ctx = experimental.WithMemoryAllocator(ctx, &i.mems)
	i.context.Context = ctx //nolint:fatcontext // replaced, not nested
	var err error
	// Without a source, wazero makes one of five kilobytes for each instance.
	bare := wazero.NewModuleConfig().WithName("").WithRandSource(rand.Reader)
	i.kernel, err = p.runtime.InstantiateModule(ctx, p.kernel, bare)
	if err != nil {
		return fmt.Errorf("%w: kernel: %w", engine.ErrEngine, err)
	}
	i.setHeader(kernelTop, kernelHeap)
	i.config = i.fixed.config(wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(meteredWriter{i, &i.Out}).WithStderr(meteredWriter{i, &i.Err}).WithNanosleep(i.sleep), p.Clock, p.Random, i)
	i.config = files.MountAll(i.config, p.Mounts, i)
	if err := i.link(ctx); err != nil {
		return err
	}
	i.mems.next = &i.mems.guest
	if i.guest, err = i.module(ctx, p.guest.code); err != nil {
		return err
	}
	return i.bind()
}

// module instantiates one of the guest's modules.
func (i *nativeInstance) module(ctx context.Context, code wazero.CompiledModule) (api.Module, error) {
	resolve := experimental.WithImportResolver(ctx, i.resolve)
	m, err := i.prog.runtime.InstantiateModule(context.WithValue(resolve, instanceKey{}, i), code, i.config)
	if err != nil {
		return nil, i.initFault(err)
	}
	return m, nil
}

// resolve finds the modules that belong to this instance; the others are the
// runtime's.
func (i *nativeInstance) resolve(name string) api.Module {
	if name == engine.ModuleEnv {
		return i.kernel
	}
	for n, m := range i.links {
		if i.prog.linked[n].Name == name {
			return m
		}
	}
	return nil
}

// bind finds the globals that the rewriter exported.
func (i *nativeInstance) bind() error {
	rewritten := i.prog.guest.meter
	if err := i.bindCounter(i.guest, rewritten.Counter); err != nil {
		return err
	}
	for _, g := range rewritten.Globals {
		global, ok := i.guest.ExportedGlobal(g.Export).(api.MutableGlobal)
		if !ok {
			return fmt.Errorf("%w: global %q is not there", engine.ErrEngine, g.Export)
		}
		i.globals = append(i.globals, global)
	}
	return nil
}

// initialise does what the rewriter took out of the instantiation, in the order of
// the specification: active data segments, then the start function; and then starts
// the guest's runtime. An instance that is put into the state of a template skips
// all of it.
func (i *nativeInstance) initialise(ctx context.Context, m api.Module, r *meter.Result, parsed *wasm.Module) error {
	for _, d := range r.Data {
		if !m.Memory().Write(d.Offset, d.Bytes) {
			return i.initFault(fmt.Errorf("data[%d]: out of bounds memory access", d.Index))
		}
	}
	names := initialisers(parsed)
	if r.Start != "" {
		names = append([]string{r.Start}, names...)
	}
	for _, name := range names {
		if err := i.initialiser(ctx, m, name); err != nil {
			return err
		}
	}
	return nil
}

// initialiser calls an export once, before the first call.
func (i *nativeInstance) initialiser(ctx context.Context, m api.Module, name string) error {
	f := m.ExportedFunction(name)
	i.begin(ctx, i.prog.Limits.InitTimeout, name, nil)
	defer i.endInit()
	_, err := f.Call(&i.context, make([]uint64, len(f.Definition().ParamTypes()))...) //nolint:contextcheck // begin put ctx into it
	if err != nil {
		return i.initFault(err)
	}
	if i.counter != nil && i.used() > i.limit { // the last charges are not looked at
		i.fault = i.outOfFuel()
		return i.initFault(i.fault)
	}
	return nil
}

func (i *nativeInstance) endInit() {
	i.End(new(engine.Outcome))
	i.input, i.output, i.written = nil, nil, false
	clear(i.vars)
	i.varBytes = 0
	clear(i.kernelMemory())
}

// warm calls describe once, so that a guest whose runtime grows its heap at the
// first call does it before the template is taken. What it answers is of no
// interest here; if it fails, the instance is broken.
func (i *nativeInstance) warm(ctx context.Context) error {
	f := i.guest.ExportedFunction("describe")
	if f == nil || len(f.Definition().ParamTypes()) > 0 {
		return nil
	}
	i.begin(ctx, i.prog.Limits.InitTimeout, "describe", nil)
	_, err := f.Call(&i.context) //nolint:contextcheck // begin put ctx into it
	i.endInit()
	return err
}

// initFault words what went wrong while an instance was made.
func (i *nativeInstance) initFault(err error) error {
	detail := engine.TrapDetail(err, ownFrame)
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		detail = fmt.Sprintf("exit code %d", exit.ExitCode())
	}
	if i.fault != nil {
		detail = i.fault.Detail + " in the start function or the initialisation of the guest's runtime"
		return &engine.Fault{Kind: engine.TrapInit, Detail: detail + i.Tail(), Err: i.fault.Err}
	}
	return &engine.Fault{Kind: engine.TrapInit, Detail: detail + i.Tail()}
}

// sleep is the guest's nanosleep. Without a real clock it does not wait; with
// one it ends with the call, also when the module is closed.
func (i *nativeInstance) sleep(ns int64) {
	if !i.prog.Clock || ns <= 0 || i.context.Context == nil {
		return
	}
	i.Leave()
	done := i.context.Done()
	if i.ready {
		i.wait("poll_oneoff")
		done = i.grants.ctx.Done()
	}
	timer := time.NewTimer(min(time.Duration(ns), time.Until(i.deadline)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
	i.Leave()
}
