package native

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Call runs an export.
func (i *nativeInstance) Call(ctx context.Context, t *engine.Target, in *engine.Input, out *engine.Outcome) ([]byte, error) {
	f := i.known(t)
	if f == nil {
		var err error
		if f, err = i.function(t); err != nil {
			return nil, err
		}
	}
	i.ready = true
	if i.mems.guest.memory != nil && !i.sticky {
		runtime.LockOSThread() // whose page faults show what the guest changes
		defer runtime.UnlockOSThread()
		i.mems.guest.memory.begin()
	}
	return i.run(ctx, f, in, out)
}

// run runs the guest, takes what it left and puts the instance back.
func (i *nativeInstance) run(ctx context.Context, f *function, in *engine.Input, out *engine.Outcome) (output []byte, err error) {
	i.begin(ctx, i.prog.Limits.Timeout, f.name, in)
	if i.kernelInput && in.Size > 0 {
		err = i.setInput(in)
	}
	if err == nil {
		i.stack[0] = 0
		err = f.run.CallWithStack(&i.context, i.stack[:]) //nolint:contextcheck // begin put ctx into it
		out.Fuel = i.total()
		if err != nil || out.Fuel > i.limit {
			err = i.broken(err, out)
		}
	}
	if err == nil {
		if f.hasCode {
			out.Code = uint32(i.stack[0] & math.MaxUint32)
		}
		output, err = i.collect(out)
	}
	i.end(out)
	return output, err
}

// broken describes what ended a guest: an error of the engine, or fuel, of which the last
// charges are not looked at.
func (i *nativeInstance) broken(err error, out *engine.Outcome) error {
	i.touched = true
	if err == nil {
		i.fault = i.outOfFuel()
		err = i.fault
	}
	out.Spent = engine.ReplacedExit
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
func (i *nativeInstance) known(t *engine.Target) *function {
	if t.Index >= len(i.handles) || i.handles[t.Index].run == nil {
		return nil
	}
	return &i.handles[t.Index]
}

// function looks an export up.
func (i *nativeInstance) function(t *engine.Target) (*function, error) {
	run := i.guest.ExportedFunction(t.Name)
	if run == nil {
		return nil, fmt.Errorf("%w: export %q is not there", engine.ErrEngine, t.Name)
	}
	if missing := t.Index + 1 - len(i.handles); missing > 0 {
		i.handles = append(i.handles, make([]function, missing)...)
	}
	i.handles[t.Index] = function{run: run, name: t.Name, hasCode: len(run.Definition().ResultTypes()) > 0}
	return &i.handles[t.Index], nil
}

// setInput puts the input where a guest that reads it word by word will look.
func (i *nativeInstance) setInput(in *engine.Input) error {
	offset, ok := i.push(in.Bytes())
	if !ok {
		return &engine.Fault{Kind: engine.TrapMemory, Detail: fmt.Sprintf("the kernel has no room for %d bytes of input", in.Size)}
	}
	i.setHeader(kernelInputOffset, offset)
	return nil
}
