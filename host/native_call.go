package host

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/tetratelabs/wazero/api"
)

// call runs an export.
func (i *nativeInstance) call(ctx context.Context, t *target, in *input, out *outcome) ([]byte, error) {
	f := i.known(t)
	if f == nil {
		var err error
		if f, err = i.function(t); err != nil {
			return nil, err
		}
	}
	i.ready = true
	switch {
	case i.counter == nil:
		return i.callBounded(ctx, f, in, out)
	case i.mems.guest.memory != nil && !i.sticky:
		return i.callPinned(ctx, f, in, out)
	}
	return i.callFunction(ctx, f, in, out)
}

// callPinned is callFunction on one thread, whose page faults tell what the guest
// changed.
func (i *nativeInstance) callPinned(ctx context.Context, f *function, in *input, out *outcome) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	i.mems.guest.memory.begin()
	return i.callFunction(ctx, f, in, out)
}

// callFunction runs the guest, takes what it left and puts the instance back.
func (i *nativeInstance) callFunction(ctx context.Context, f *function, in *input, out *outcome) (output []byte, err error) {
	i.begin(ctx, i.prog.limits.Timeout, f.name, in)
	if i.kernelInput && in.size > 0 {
		err = i.setInput(in)
	}
	if err == nil {
		i.stack[0] = 0
		err = f.run.CallWithStack(i.running(), i.stack[:]) //nolint:contextcheck // begin put ctx into it
		out.fuel = i.total()
		if err != nil || out.fuel > i.limit {
			err = i.broken(err, out)
		}
	}
	if err == nil {
		if f.hasCode {
			out.code = uint32(i.stack[0] & math.MaxUint32)
		}
		output, err = i.collect(out)
	}
	i.end(out)
	return output, err
}

// broken says what ended a guest: an error of the engine, or fuel, of which the last
// charges are not looked at.
func (i *nativeInstance) broken(err error, out *outcome) error {
	i.touched = true
	if err == nil {
		i.fault = i.outOfFuel()
		err = i.fault
	}
	out.spent = ReplacedExit
	i.stack[0] = 0
	return i.classify(err)
}

// function is the handle of an export. Looking one up is expensive.
type function struct {
	run     api.Function
	name    string
	hasCode bool
}

// known returns the handle of an export that was called before, or nil.
func (i *nativeInstance) known(t *target) *function {
	if t.index >= len(i.handles) || i.handles[t.index].run == nil {
		return nil
	}
	return &i.handles[t.index]
}

// function looks an export up.
func (i *nativeInstance) function(t *target) (*function, error) {
	run := i.guest.ExportedFunction(t.name)
	if run == nil {
		return nil, fmt.Errorf("%w: export %q is not there", ErrEngine, t.name)
	}
	if missing := t.index + 1 - len(i.handles); missing > 0 {
		i.handles = append(i.handles, make([]function, missing)...)
	}
	i.handles[t.index] = function{run: run, name: t.name, hasCode: len(run.Definition().ResultTypes()) > 0}
	return &i.handles[t.index], nil
}

// setInput puts the input where a guest that reads it word by word will look.
func (i *nativeInstance) setInput(in *input) error {
	offset, ok := i.push(in.bytes())
	if !ok {
		return &fault{kind: TrapMemory, detail: fmt.Sprintf("the kernel has no room for %d bytes of input", in.size)}
	}
	i.setHeader(kernelInputOffset, offset)
	return nil
}
