package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

// start instantiates the kernel and the guest, linked to each other.
func (i *nativeInstance) start(ctx context.Context) error {
	p := i.prog
	ctx = experimental.WithMemoryAllocator(ctx, &i.mems)
	i.context.Context = ctx //nolint:fatcontext // replaced, not nested
	var err error
	// Without a source, wazero makes one of five kilobytes for each instance.
	config := wazero.NewModuleConfig().WithName("").WithRandSource(rand.Reader)
	i.kernel, err = p.runtime.InstantiateModule(ctx, p.kernel, config)
	if err != nil {
		return fmt.Errorf("%w: kernel: %w", ErrEngine, err)
	}
	i.setHeader(kernelTop, kernelHeap)
	i.mems.guestNext = true
	if p.unmetered != "" { // its start function runs now
		i.begin(ctx, p.limits.InitTimeout, "", nil)
		defer i.endInit()
	}
	linked := experimental.WithImportResolver(ctx, func(name string) api.Module {
		if name == moduleEnv {
			return i.kernel
		}
		return nil
	})
	linked = context.WithValue(linked, instanceKey{}, i)
	config = wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(meteredWriter{i, io.Discard}).WithStderr(meteredWriter{i, &i.stderr}).WithNanosleep(i.sleep)
	config = i.fixed.config(config, p.grants, i)
	i.guest, err = p.runtime.InstantiateModule(linked, p.guest, config)
	if err != nil {
		return i.initFault(err)
	}
	return i.bind()
}

// bind finds the globals that the rewriter exported.
func (i *nativeInstance) bind() error {
	if i.prog.unmetered != "" {
		return nil
	}
	var ok bool
	if i.counter, ok = i.guest.ExportedGlobal(i.prog.meter.Counter).(api.MutableGlobal); !ok {
		return fmt.Errorf("%w: the meter's counter is not there", ErrEngine)
	}
	for _, g := range i.prog.meter.Globals {
		global, ok := i.guest.ExportedGlobal(g.Export).(api.MutableGlobal)
		if !ok {
			return fmt.Errorf("%w: global %q is not there", ErrEngine, g.Export)
		}
		i.globals = append(i.globals, global)
	}
	return nil
}

// populate does what the rewriter took out of the instantiation, in the order of
// the specification: active data segments, then the start function. An instance
// that is put into the state of a template skips both.
func (i *nativeInstance) populate(ctx context.Context) error {
	for _, d := range i.prog.meter.Data {
		if !i.guest.Memory().Write(d.Offset, d.Bytes) {
			return i.initFault(fmt.Errorf("data[%d]: out of bounds memory access", d.Index))
		}
	}
	if i.prog.meter.Start == "" {
		return nil
	}
	return i.initialiser(ctx, i.prog.meter.Start)
}

// initialise starts the guest's runtime.
func (i *nativeInstance) initialise(ctx context.Context) error {
	for _, name := range i.prog.initialisers() {
		if err := i.initialiser(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// initialiser calls an export once, before the first call.
func (i *nativeInstance) initialiser(ctx context.Context, name string) error {
	f := i.guest.ExportedFunction(name)
	i.begin(ctx, i.prog.limits.InitTimeout, name, nil)
	defer i.endInit()
	_, err := f.Call(i.running(), make([]uint64, len(f.Definition().ParamTypes()))...) //nolint:contextcheck // begin put ctx into it
	if err != nil {
		return i.initFault(err)
	}
	return nil
}

func (i *nativeInstance) endInit() {
	i.log.end()
	i.input, i.output = nil, nil
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
	i.begin(ctx, i.prog.limits.InitTimeout, "describe", nil)
	_, err := f.Call(&i.context) //nolint:contextcheck // begin put ctx into it
	i.endInit()
	return err
}

// initFault words what went wrong while an instance was made.
func (i *nativeInstance) initFault(err error) error {
	if f := i.ended(); f != nil && i.fault == nil {
		i.fault = f
	}
	detail := trapDetail(err)
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		detail = fmt.Sprintf("exit code %d", exit.ExitCode())
	}
	if i.fault != nil {
		detail = i.fault.detail + " in the start function or the initialisation of the guest's runtime"
		return &fault{kind: TrapInit, detail: detail + i.stderrDetail(), err: i.fault.err}
	}
	return &fault{kind: TrapInit, detail: detail + i.stderrDetail()}
}

// sleep is the guest's nanosleep. Without a real clock it does not wait; with
// one it ends with the call.
func (i *nativeInstance) sleep(ns int64) {
	if !i.prog.grants.Clock || ns <= 0 || i.context.Context == nil {
		return
	}
	if i.late() {
		i.fail(i.stopped(context.DeadlineExceeded))
	}
	timer := time.NewTimer(min(time.Duration(ns), time.Until(i.deadline)))
	defer timer.Stop()
	select {
	case <-timer.C:
		if i.late() {
			i.fail(i.stopped(context.DeadlineExceeded))
		}
	case <-i.context.Done():
		i.fail(i.stopped(i.context.Err()))
	}
}
