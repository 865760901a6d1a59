package extism

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// InstanceKey finds the instance of a call in its context.
type InstanceKey struct{}

// extismInstance is an instance and, while one runs, its call. It runs one call
// at a time.
type extismInstance struct {
	prog     *extismProgram
	plugin   *extism.Plugin
	memories memories
	engine.Written
	// sticky reports that variables are kept between calls.
	sticky bool
	// closed reports that wazero closed a part of the instance, exitCode why.
	closed   bool
	exitCode uint32

	// stop ends the call in progress.
	stop atomic.Pointer[context.CancelCauseFunc]
	// interrupted reports that no call may continue.
	interrupted atomic.Bool

	// Of the call in progress.
	input   []byte
	output  []byte
	written bool
	fault   *engine.Fault
	done    <-chan struct{}
	grants  extismGrants
	// called is the import that the guest called last, entered when. ended is when the
	// call's context ended.
	called  string
	entered time.Time
	ended   *atomic.Pointer[time.Time]
	// files is kept from call to call, as go-sdk keeps descriptors.
	files engine.FileUse
}

func newExtismInstance(p *extismProgram, sticky bool) *extismInstance {
	i := &extismInstance{prog: p, sticky: sticky}
	i.Written.Open(&p.Source)
	return i
}

func (i *extismInstance) notifyClosed(_ context.Context, exitCode uint32) {
	i.closed, i.exitCode = true, exitCode
}

// sleep is the guest's nanosleep. Without a real clock it does not wait; with
// one it ends with the call.
func (i *extismInstance) sleep(ns int64) {
	if !i.prog.Clock || ns <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.done:
	}
}

// begin prepares the record of a call.
func (i *extismInstance) begin(ctx context.Context, export string, input []byte) context.Context {
	i.input, i.output, i.written, i.fault = input, nil, false, nil
	i.done = ctx.Done()
	i.Reset()
	i.Log.Begin(ctx, export)
	return context.WithValue(ctx, InstanceKey{}, i)
}

// end lets go of everything that belongs to a call.
func (i *extismInstance) end() {
	i.input, i.output, i.done = nil, nil, nil
	if !i.sticky {
		clear(i.plugin.Var)
	}
	i.End(new(engine.Outcome))
	i.grants = extismGrants{}
	i.files.Written = 0
}

func (i *extismInstance) Call(ctx context.Context, t *engine.Target, in *engine.Input, out *engine.Outcome) (output []byte, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	i.stop.Store(&stop)
	if i.interrupted.Load() {
		stop(engine.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, i.prog.Limits.Timeout)
	defer cancel()
	defer i.watch(ctx)()
	if i.closed {
		return nil, fmt.Errorf("%w: the instance is closed", engine.ErrEngine)
	}
	input := in.Bytes()
	callCtx := i.begin(ctx, t.Name, input)
	i.grants.ctx = ctx //nolint:fatcontext // replaced, not nested
	defer i.end()
	defer func() {
		i.End(out)
		if r := recover(); r != nil {
			output, err = nil, fmt.Errorf("%w: the call panicked: %s", engine.ErrEngine, engine.Clean(fmt.Sprint(r), engine.MaxDetail))
		}
	}()
	code, output, err := i.plugin.CallWithContext(callCtx, t.Name, input)
	if err != nil {
		refused, f := i.classify(ctx, err)
		if f != nil {
			return nil, f
		}
		out.Text = refused
	}
	if i.written {
		output = i.output
	}
	if len(output) > i.prog.Limits.OutputBytes {
		return nil, engine.OutputFault(len(output), i.prog.Limits.OutputBytes)
	}
	if output == nil {
		output = []byte{}
	}
	out.Code = code
	// A context that ended during the call may have closed the module just as the
	// call returned.
	out.Spent = i.spent(ctx)
	return output, nil
}

// watch records when the context of a call ends, until what it returns is called.
func (i *extismInstance) watch(ctx context.Context) (stop func()) {
	ended := new(atomic.Pointer[time.Time])
	i.called, i.ended = "", ended
	unwatch := context.AfterFunc(ctx, func() {
		now := time.Now()
		ended.Store(&now)
	})
	return func() { unwatch() }
}

// spent is why the instance must not be used again after a call that returned.
func (i *extismInstance) spent(ctx context.Context) engine.Reason {
	switch {
	case i.files.Touched:
		return engine.ReplacedFiles
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return engine.TrapDeadline
	case ctx.Err() != nil:
		return engine.TrapCancelled
	case i.closed:
		return engine.ReplacedExit
	case !i.sticky && i.memories.largest() > i.prog.Limits.MemoryPages*wasm.PageSize/4*3:
		return engine.ReplacedMemory
	case !i.kernelSane():
		return engine.ReplacedKernel
	}
	return ""
}

// kernelSane looks at the header of the Extism kernel, which the guest can
// write: how much is in use, at byte 9, and how much there is, at byte 17. With
// a wrong header go-sdk's next call would trap before it reaches the guest. The
// next call also begins with clearing what is in use, at 6 ms for each MiB and
// without a context; above 4 MiB a new instance is cheaper.
func (i *extismInstance) kernelSane() bool {
	const header, dirty = 65, 4 << 20
	k := i.memories.kernel()
	if len(k) < header {
		return false
	}
	size := uint64(len(k))
	return binary.LittleEndian.Uint64(k[9:]) <= min(size-header, dirty) && binary.LittleEndian.Uint64(k[17:]) <= size
}

// classify tells a refusal from a fault.
func (i *extismInstance) classify(ctx context.Context, err error) (refused string, f *engine.Fault) {
	if i.fault != nil {
		return "", i.fault
	}
	_, isExit := errors.AsType[*sys.ExitError](err)
	// go-sdk passes some errors on as text only. A refusal that comes when the
	// context has ended counts as stopped too.
	if ctx.Err() != nil && (isExit || errors.Unwrap(err) == nil) {
		return "", i.stopped(ctx, "")
	}
	if !isExit && errors.Unwrap(err) == nil && !i.closed && err.Error() == i.plugin.GetErrorWithContext(ctx) {
		return err.Error(), nil
	}
	f = engine.Broken(err, nil, i.memories.largest(), i.prog.Limits.MemoryPages)
	f.Detail += i.Tail()
	return "", f
}

// stopped is the fault of a guest that its context stopped.
func (i *extismInstance) stopped(ctx context.Context, where string) *engine.Fault {
	f := &engine.Fault{Kind: engine.TrapCancelled, Detail: "the caller gave up" + where, Err: ctx.Err()}
	if cause := context.Cause(ctx); errors.Is(cause, engine.ErrClosed) {
		f.Err = cause
	}
	if errors.Is(f.Err, context.DeadlineExceeded) {
		f.Kind, f.Detail = engine.TrapDeadline, "out of time"+where
	}
	f.Detail += i.Tail()
	return f
}

// Interrupt ends the call in progress, and the one that is about to begin.
func (i *extismInstance) Interrupt() {
	i.interrupted.Store(true)
	if stop := i.stop.Load(); stop != nil {
		(*stop)(engine.ErrClosed)
	}
}

// Close closes every part. go-sdk stops at the first part that fails, so it is
// asked again; parts that are closed already do nothing.
func (i *extismInstance) Close(ctx context.Context) error {
	var errs []error
	for range 3 {
		err := i.plugin.Close(ctx)
		if err == nil {
			break
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
