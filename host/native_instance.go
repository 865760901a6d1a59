package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// callContext is the context of a call. There is one for each instance, so that
// a call allocates none.
type callContext struct {
	context.Context //nolint:containedctx // it is a context

	instance *nativeInstance
}

// Value implements context.Context. The engine asks at each call for keys of its
// own, which the caller's context does not have; what the host wants to know it
// asks that one.
func (c *callContext) Value(key any) any {
	if _, ok := key.(instanceKey); ok {
		return c.instance
	}
	return nil
}

// nativeInstance is a guest with its kernel and, while one runs, its call. It
// runs one call at a time.
type nativeInstance struct {
	prog    *nativeProgram
	context callContext
	kernel  api.Module
	guest   api.Module
	config  wazero.ModuleConfig
	mems    nativeMemories
	// calls are the handles of exports by the index of their target.
	calls []function
	// links are the linked modules, in the order of the program's.
	links []api.Module
	// counters are those of all modules, counter the one of the module made last,
	// which pays for what the host does. Both are empty if the guest is not metered.
	counters []*counter
	counter  *counter
	globals  []api.MutableGlobal
	adopted  *template
	stderr   head
	log      guestLog
	fixed    fixedSources
	stack    [2]uint64
	// files tells that the guest has closed or moved one of its descriptors.
	files bool
	// sticky tells that the state is kept between calls.
	sticky bool
	// stop is set by another goroutine to end the call, and cancel called, if the
	// call is not metered.
	stop   atomic.Bool
	cancel atomic.Pointer[context.CancelCauseFunc]

	// ready is set by the first call: before, an instance is being made.
	ready  bool
	grants nativeGrants
	// caller is the module that called a granted function last.
	caller api.Module

	// none is the input of what runs before the first call.
	none input

	// Of the call in progress.
	input    *input
	output   []byte
	written  bool
	vars     map[string][]byte
	varBytes int
	fault    *fault
	// deadline is set at the first look, which is when the first slice of fuel is
	// used up: most calls end before, and need no clock.
	deadline time.Time
	timeout  time.Duration
	// limit is how much fuel there is.
	limit int64
}

func newNativeInstance(p *nativeProgram) *nativeInstance {
	i := &nativeInstance{prog: p}
	i.context.instance = i
	i.mems.guest.kind = p.memory
	i.mems.guest.fixed = shared(p.parsed)
	i.stderr.limit = p.limits.StderrBytes
	i.log = guestLog{logger: p.logger, module: p.name, granted: p.grants.Log, level: p.grants.logLevel(), limit: p.limits.LogBytes}
	return i
}

func (i *nativeInstance) memory() []byte       { return i.mems.guest.bytes() }
func (i *nativeInstance) kernelMemory() []byte { return i.mems.kernel.bytes() }

// begin prepares a call.
func (i *nativeInstance) begin(ctx context.Context, timeout time.Duration, export string, in *input) {
	i.context.Context = ctx //nolint:fatcontext // replaced, not nested
	i.timeout = timeout
	if in == nil {
		in = &i.none
	}
	i.input, i.output, i.written, i.fault = in, nil, false, nil
	i.limit = i.prog.limits.Fuel
	i.deadline = time.Time{}
	i.stderr.reset()
	if !i.sticky {
		i.fixed.reset()
	}
	i.log.beginNative(ctx, export)
	i.setHeader(kernelTop, kernelHeap)
	if i.counter != nil {
		i.grant()
	}
}

// late tells whether the call has been running for longer than it may.
func (i *nativeInstance) late() bool {
	now := time.Now()
	if i.deadline.IsZero() {
		i.deadline = now.Add(i.timeout)
		if d, ok := i.context.Deadline(); ok && d.Before(i.deadline) {
			i.deadline = d
		}
	}
	return !now.Before(i.deadline)
}

func (i *nativeInstance) closed() *fault {
	return &fault{kind: TrapCancelled, detail: "the module was closed", err: ErrClosed}
}

func (i *nativeInstance) stopped(err error) *fault {
	if errors.Is(err, context.DeadlineExceeded) {
		return &fault{kind: TrapDeadline, detail: "out of time", err: err}
	}
	return &fault{kind: TrapCancelled, detail: "the caller gave up", err: err}
}

// fail ends the guest with a fault.
func (i *nativeInstance) fail(f *fault) {
	i.fault = f
	panic(f)
}

// call runs an export.
func (i *nativeInstance) call(ctx context.Context, timeout time.Duration, t *target, in *input, out *outcome) error {
	f, err := i.function(t)
	if err != nil {
		return err
	}
	i.ready = true
	if i.prog.unmetered != "" {
		var done context.CancelFunc
		ctx, done = i.bounded(ctx, timeout)
		defer done()
	}
	i.begin(ctx, timeout, t.name, in)
	if err := i.setInput(in); err != nil {
		i.end(out)
		return err
	}
	i.stack[0] = 0
	if i.mems.guest.memory != nil && !i.sticky {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		i.mems.guest.memory.begin()
	}
	err = f.run.CallWithStack(i.running(), i.stack[:]) //nolint:contextcheck // begin put ctx into it
	out.fuel = i.total()
	if err == nil && out.fuel > i.limit && i.counter != nil { // the last charges are not looked at
		i.fault = i.outOfFuel()
		err = i.fault
	}
	if err != nil {
		out.spent = true
		i.stack[0] = 0
		err = i.classify(err)
	}
	if err == nil {
		err = i.collect(out, f.hasCode)
	}
	i.end(out)
	return err
}

// function is the handle of an export. Looking one up is expensive.
type function struct {
	run     api.Function
	hasCode bool
}

func (i *nativeInstance) function(t *target) (*function, error) {
	if t.index < len(i.calls) && i.calls[t.index].run != nil {
		return &i.calls[t.index], nil
	}
	run := i.guest.ExportedFunction(t.name)
	if run == nil {
		return nil, fmt.Errorf("%w: export %q is not there", ErrEngine, t.name)
	}
	if missing := t.index + 1 - len(i.calls); missing > 0 {
		i.calls = append(i.calls, make([]function, missing)...)
	}
	i.calls[t.index] = function{run: run, hasCode: len(run.Definition().ResultTypes()) > 0}
	return &i.calls[t.index], nil
}

// setInput puts the input where the guest will look for it.
func (i *nativeInstance) setInput(in *input) error {
	i.setHeader(kernelInputLength, uint64(in.size)) //nolint:gosec // not negative
	if !i.prog.kernelInput || in.size == 0 {
		return nil
	}
	offset, ok := i.push(in.bytes())
	if !ok {
		return &fault{kind: TrapMemory, detail: fmt.Sprintf("the kernel has no room for %d bytes of input", in.size)}
	}
	i.setHeader(kernelInputOffset, offset)
	return nil
}

// collect takes code, output and error text.
func (i *nativeInstance) collect(out *outcome, hasCode bool) error {
	if hasCode {
		out.code = uint32(i.stack[0] & math.MaxUint32)
	}
	if offset := i.header(kernelErrorOffset); offset != 0 {
		text, ok := i.blockAt(offset)
		if !ok {
			return &fault{kind: TrapFault, detail: "error_set: there is no block"}
		}
		out.text = string(text)
	}
	if i.written {
		out.output = i.output
		return nil
	}
	length := i.header(kernelOutputLength)
	if length == 0 {
		out.output = emptyOutput()
		return nil
	}
	if length > uint64(i.prog.limits.OutputBytes) { // not negative
		out.spent = true
		return outputFault(int(min(length, math.MaxInt32)), i.prog.limits.OutputBytes)
	}
	from, ok := i.at(i.header(kernelOutputOffset), length)
	if !ok {
		out.spent = true
		return &fault{kind: TrapFault, detail: fmt.Sprintf("output_set: %d bytes are outside the kernel's memory", length)}
	}
	out.output = taken(from)
	return nil
}

// emptyOutput is an output without bytes, which is not the same as none.
func emptyOutput() []byte { return []byte{} }

// end lets go of the call and puts the instance back into its first state.
func (i *nativeInstance) end(out *outcome) {
	out.logsDropped = i.log.dropped
	i.log.end()
	i.grants.end()
	i.input, i.output = nil, nil
	if i.sticky {
		i.clearKernel()
		return
	}
	if len(i.vars) > 0 {
		clear(i.vars)
		i.varBytes = 0
	}
	if !out.spent && !i.reset() {
		out.spent = true
	}
}

// reset clears the kernel and puts memory and globals back. It reports whether
// the instance is as it was.
func (i *nativeInstance) reset() bool {
	i.clearKernel()
	if len(i.kernelMemory()) > kernelHighWater || i.adopted == nil || i.files || i.prog.stateful() {
		return false
	}
	if !i.mems.guest.reset(i.adopted) {
		return false
	}
	for n, g := range i.globals {
		g.Set(i.adopted.globals[n])
	}
	return true
}

// clearKernel clears the part of the kernel that the call has used.
func (i *nativeInstance) clearKernel() {
	k := i.kernelMemory()
	top := min(max(i.header(kernelTop), i.header(kernelHighTop)), uint64(len(k)))
	if top <= kernelHeap {
		top = kernelLists // there never was a block, so none was freed
	}
	clear(k[:top])
}

// keep makes the instance keep its state between calls.
func (i *nativeInstance) keep() { i.sticky = true }

// kernelHighWater is the size of a kernel's memory above which its instance is
// replaced.
const kernelHighWater = 4 << 20

// classify tells what ended a guest. One that exited with code 0 has succeeded.
func (i *nativeInstance) classify(err error) error {
	if f := i.ended(); f != nil && i.fault == nil {
		i.fault = f
	}
	if i.fault != nil {
		i.fault.detail += i.stderrDetail()
		return i.fault
	}
	f := &fault{kind: TrapFault, detail: trapDetail(err)}
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		if exit.ExitCode() == 0 {
			return nil
		}
		f = &fault{kind: TrapExit, detail: fmt.Sprintf("exit code %d", exit.ExitCode()), code: exit.ExitCode()}
	}
	if size := len(i.memory()); size > i.prog.limits.MemoryPages*wasm.PageSize/4*3 {
		f.kind = TrapMemory
		f.detail += fmt.Sprintf("; %d of %d bytes of memory are in use", size, i.prog.limits.MemoryPages*wasm.PageSize)
	}
	f.detail += i.stderrDetail()
	return f
}

func (i *nativeInstance) stderrDetail() string {
	if i.stderr.empty() {
		return ""
	}
	return "; stderr: " + clean(i.stderr.String(), maxDetail)
}

// weight is the size of the guest's memory.
func (i *nativeInstance) weight() int { return len(i.memory()) }

// interrupt ends the call in progress from another goroutine.
func (i *nativeInstance) interrupt() {
	i.stop.Store(true)
	if cancel := i.cancel.Load(); cancel != nil {
		(*cancel)(ErrClosed)
	}
	i.grants.interrupt()
}

func (i *nativeInstance) close(ctx context.Context) error {
	var errs []error
	modules := append([]api.Module{i.kernel}, i.links...)
	for _, m := range slices.Backward(append(modules, i.guest)) {
		if m != nil {
			errs = append(errs, m.Close(ctx))
		}
	}
	i.mems.free()
	return errors.Join(errs...)
}

func outputFault(n, limit int) *fault {
	return &fault{kind: TrapOutput, detail: fmt.Sprintf("%d bytes of output, %d are allowed", n, limit)}
}
