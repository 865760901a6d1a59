package native

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/engine"
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

// instanceKey finds the instance of a call in its context.
type instanceKey struct{}

// nativeInstance is a guest with its kernel and, while one runs, its call. It
// runs one call at a time.
type nativeInstance struct {
	prog    *nativeProgram
	context callContext
	kernel  api.Module
	guest   api.Module
	config  wazero.ModuleConfig
	mems    nativeMemories
	// handles are those of exports by the index of their target.
	handles []function
	// links are the linked modules, in the order of the program's.
	links []api.Module
	// counters are those of all modules, counter the one of the module made last,
	// which pays for what the host does. Both are empty while the first one is made.
	counters []*counter
	counter  *counter
	globals  []api.MutableGlobal
	adopted  *template
	// renewable reports that memory and globals are all the state, and known.
	renewable bool
	engine.Written

	fixed fixedSources
	stack [2]uint64
	// files reports that the guest has closed or moved one of its descriptors.
	files bool
	// sticky reports that the state is kept between calls.
	sticky bool
	// kernelInput reports that the guest reads its input from the kernel.
	kernelInput bool
	// stop is set by another goroutine to end the call.
	stop atomic.Bool

	// ready is set by the first call: before, an instance is being made.
	ready  bool
	grants nativeGrants
	// asker is the module that called a granted function last.
	asker api.Module

	// none is the input of what runs before the first call.
	none engine.Input

	// touched reports that the call in progress, or the one before, did more than compute,
	// read its input and write its output. Whatever else changes the instance sets it.
	touched bool

	// Of the call in progress.
	input    *engine.Input
	output   []byte
	written  bool
	vars     map[string][]byte
	varBytes int
	fault    *engine.Fault
	// deadline is set at the first look, which is when the first slice of fuel is
	// used up: most calls end before, and need no clock.
	deadline time.Time
	// looked is when that was, remaining how long after it the deadline is, and seen how
	// long after it the last look was.
	looked          time.Time
	remaining, seen time.Duration
	// called is the import that the guest called last, empty when it has computed since.
	called  string
	timeout time.Duration
	// limit is how much fuel there is for a call.
	limit int64
}

func newNativeInstance(p *nativeProgram) *nativeInstance {
	i := &nativeInstance{prog: p, limit: p.Limits.Fuel, kernelInput: p.kernelInput, touched: true}
	i.context.instance = i
	i.mems.guest.kind = p.memory
	i.mems.guest.fixed = shared(p.Parsed)
	i.Written.Open(&p.Source)
	return i
}

func (i *nativeInstance) memory() []byte       { return i.mems.guest.bytes() }
func (i *nativeInstance) kernelMemory() []byte { return i.mems.kernel.bytes() }

// begin prepares a call.
func (i *nativeInstance) begin(ctx context.Context, timeout time.Duration, export string, in *engine.Input) {
	if in == nil {
		in = &i.none
	}
	i.context.Context = ctx //nolint:fatcontext // replaced, not nested
	i.input = in
	i.timeout = timeout
	if i.touched {
		i.forget()
	}
	if i.Log.Granted {
		i.touched = true
		i.Log.BeginNative(ctx, export)
	}
	h := i.head()
	binary.LittleEndian.PutUint64(h[kernelTop:], kernelHeap)
	binary.LittleEndian.PutUint64(h[kernelInputLength:], uint64(in.Size)) //nolint:gosec // not negative
	if i.counter != nil {
		i.grant()
	}
}

// forget drops what the call before left behind, if it did more than compute, read its
// input and write its output.
func (i *nativeInstance) forget() {
	i.touched = false
	i.fault = nil
	i.deadline = time.Time{}
	i.Reset()
	if !i.sticky {
		i.fixed.reset()
	}
}

// look looks at the clock. It returns how long ago the first look of the call was, which
// sets the deadline.
func (i *nativeInstance) look() time.Duration {
	if i.deadline.IsZero() {
		i.touched = true
		i.looked = time.Now()
		i.deadline = i.looked.Add(i.timeout)
		if d, ok := i.context.Deadline(); ok && d.Before(i.deadline) {
			i.deadline = d
		}
		i.remaining = i.deadline.Sub(i.looked)
		return 0
	}
	return time.Since(i.looked) // half the time that time.Now takes
}

// check looks at the clock, and returns why the call must not continue, nil if it may.
func (i *nativeInstance) check() *engine.Fault {
	now := i.look()
	var f *engine.Fault
	switch err := i.context.Err(); {
	case i.stop.Load():
		f = i.closed()
	case err != nil:
		f = i.stopped(err)
	case now >= i.remaining:
		f = i.stopped(context.DeadlineExceeded)
	}
	if f != nil {
		f.Late = i.overran(now)
	}
	i.seen = now
	return f
}

// overran returns the host call since the last look, if it came back late. When the call
// was cancelled is known where it could wait; elsewhere it may have been right after that look.
func (i *nativeInstance) overran(now time.Duration) *engine.Overrun {
	if i.called == "" {
		return nil
	}
	ended := i.remaining
	if now < i.remaining || i.stop.Load() || errors.Is(i.context.Err(), context.Canceled) {
		ended = min(ended, i.grants.cancelled(i.looked, i.seen, now))
	}
	return engine.OverrunOf(i.called, i.seen, ended, now)
}

func (i *nativeInstance) closed() *engine.Fault {
	return &engine.Fault{Kind: engine.TrapCancelled, Detail: "the module was closed", Err: engine.ErrClosed}
}

func (i *nativeInstance) stopped(err error) *engine.Fault {
	if errors.Is(err, context.DeadlineExceeded) {
		return &engine.Fault{Kind: engine.TrapDeadline, Detail: "out of time", Err: err}
	}
	return &engine.Fault{Kind: engine.TrapCancelled, Detail: "the caller gave up", Err: err}
}

// Fail ends the guest with a fault.
func (i *nativeInstance) Fail(f *engine.Fault) {
	i.touched = true
	i.fault = f
	panic(f)
}

// collect takes output and error text.
func (i *nativeInstance) collect(out *engine.Outcome) ([]byte, error) {
	h := i.head()
	if offset := binary.LittleEndian.Uint64(h[kernelErrorOffset:]); offset != 0 {
		text, ok := i.blockAt(offset)
		if !ok {
			return nil, &engine.Fault{Kind: engine.TrapFault, Detail: "error_set: there is no block"}
		}
		out.Text = string(text)
	}
	if i.written {
		return i.output, nil
	}
	length := binary.LittleEndian.Uint64(h[kernelOutputLength:])
	if length == 0 {
		return emptyOutput(), nil
	}
	return i.kernelOutput(out, length)
}

// kernelOutput takes an output that the guest has put into the kernel.
func (i *nativeInstance) kernelOutput(out *engine.Outcome, length uint64) ([]byte, error) {
	if length > uint64(i.prog.Limits.OutputBytes) { // not negative
		out.Spent = engine.TrapOutput
		return nil, engine.OutputFault(int(min(length, math.MaxInt32)), i.prog.Limits.OutputBytes)
	}
	from, ok := i.at(i.header(kernelOutputOffset), length)
	if !ok {
		out.Spent = engine.TrapFault
		return nil, &engine.Fault{Kind: engine.TrapFault, Detail: fmt.Sprintf("output_set: %d bytes are outside the kernel's memory", length)}
	}
	return taken(from), nil
}

// emptyOutput is an output without bytes, which is not the same as none.
func emptyOutput() []byte { return []byte{} }

// end lets go of the call and puts the instance back into its first state.
func (i *nativeInstance) end(out *engine.Outcome) {
	if i.touched {
		i.End(out)
		i.grants.end()
		if !i.sticky && len(i.vars) > 0 {
			clear(i.vars)
			i.varBytes = 0
		}
	}
	if i.written {
		i.output, i.written = nil, false
	}
	switch {
	case out.Spent != "":
	case i.sticky:
		i.clearKernel()
	case !i.renewable:
		out.Spent = engine.ReplacedState
	case i.files:
		out.Spent = engine.ReplacedFiles
	case len(i.mems.kernel.buf) > kernelHighWater:
		out.Spent = engine.ReplacedKernel
	default:
		i.clearKernel()
		if !i.reset() {
			out.Spent = engine.ReplacedMemory
		}
	}
}

// reset puts memory and globals back. It reports whether they are as they were.
func (i *nativeInstance) reset() bool {
	if i.mems.guest.memory != nil && !i.resetMemory() {
		return false
	}
	for n, g := range i.globals {
		g.Set(i.adopted.globals[n])
	}
	return true
}

// clearKernel clears the part of the kernel that the call has used.
func (i *nativeInstance) clearKernel() {
	h := i.head()
	top := max(binary.LittleEndian.Uint64(h[kernelTop:]), binary.LittleEndian.Uint64(h[kernelHighTop:]))
	if top <= kernelHeap {
		*h = [kernelLists]byte{} // there never was a block, so none was freed
		return
	}
	k := i.kernelMemory()
	clear(k[:min(top, uint64(len(k)))])
}

// kernelHighWater is the size of a kernel's memory above which its instance is
// replaced.
const kernelHighWater = 4 << 20

// classify describes what ended a guest. One that exited with code 0 has succeeded.
func (i *nativeInstance) classify(err error) error {
	if i.fault != nil {
		i.fault.Detail += i.Tail()
		return i.fault
	}
	if exit, ok := errors.AsType[*sys.ExitError](err); ok && exit.ExitCode() == 0 {
		return nil
	}
	f := engine.Broken(err, ownFrame, len(i.memory()), i.prog.Limits.MemoryPages)
	f.Detail += i.Tail()
	return f
}

// Interrupt ends the call in progress from another goroutine.
func (i *nativeInstance) Interrupt() {
	i.stop.Store(true)
	i.grants.interrupt()
}

func (i *nativeInstance) Close(ctx context.Context) error {
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
