package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Bounds of [Grants].Functions.
const (
	maxFunctions = 256
	maxParams    = 32
)

// functionCall is the fuel for the way into a function and back.
const functionCall = 1_000

// Function is a host function of the embedder.
type Function struct {
	// Module and Name are what the guest imports. Default of Module
	// "extism:host/user", where the Extism PDKs look. The modules of this package,
	// of Extism and of WASI cannot be used.
	Module, Name string
	// Params and Results are its signature, at most 32 of each.
	Params, Results []ValueType
	// Call runs the function on the goroutine of the call. stack holds the
	// parameters, each in the bits of its type, and takes the results, from the
	// first one on; it is as long as the longer of the two. ctx ends with the call
	// of the guest: a function that waits must end with it. It must not call the
	// module again, which fails with [ErrReentry], and not keep c or stack.
	//
	// An error ends the guest's call with a [TrapError] that wraps it and shows its
	// text; only [ErrRetired] and [ErrClosed] are not found in it, since they would
	// speak of this module and not of another that the function called. A panic does
	// the same with [ErrEngine]. Instances run at once, so Call must be safe for
	// concurrent use.
	Call func(ctx context.Context, c *Caller, stack []uint64) error
}

// withDefaults checks a function and fills in its module.
func (f Function) withDefaults(n int) (Function, error) {
	at := fmt.Sprintf("Grants.Functions[%d]", n)
	if f.Module == "" {
		f.Module = engine.ModuleUser
	}
	switch {
	case f.Name == "":
		return f, errors.New(at + ".Name is empty; use the name that the guest imports")
	case f.Call == nil:
		return f, errors.New(at + ".Call is nil; give it the function")
	case len(f.Params) > maxParams || len(f.Results) > maxParams:
		return f, fmt.Errorf("%s: more than %d parameters or results; pass a block", at, maxParams)
	case f.Module == engine.ModuleEnv || strings.HasPrefix(f.Module, "mortise:") || strings.HasPrefix(f.Module, "wasi_"):
		return f, fmt.Errorf("%s.Module %q is not for functions of an embedder; use a name of your own", at, engine.Clean(f.Module, engine.MaxName))
	}
	for _, t := range append(slices.Clone(f.Params), f.Results...) {
		switch t {
		case I32, I64, F32, F64:
		default:
			return f, fmt.Errorf("%s: 0x%02x is not a type; use I32, I64, F32 or F64", at, byte(t))
		}
	}
	f.Params, f.Results = slices.Clone(f.Params), slices.Clone(f.Results)
	return f, nil
}

// functions checks the functions of a module.
func functions(in []Function) ([]Function, error) {
	if len(in) > maxFunctions {
		return nil, fmt.Errorf("Grants.Functions: %d, at most %d are possible", len(in), maxFunctions)
	}
	var out []Function
	for n, f := range in {
		f, err := f.withDefaults(n)
		if err != nil {
			return nil, err
		}
		if _, ok := find(out, f.Module, f.Name); ok {
			return nil, fmt.Errorf("Grants.Functions[%d]: %s.%s is there twice", n, engine.Clean(f.Module, engine.MaxName), engine.Clean(f.Name, engine.MaxName))
		}
		out = append(out, f)
	}
	return out, nil
}

// find returns the function that an import names.
func find(all []Function, module, name string) (Function, bool) {
	n := slices.IndexFunc(all, func(f Function) bool { return f.Module == module && f.Name == name })
	if n < 0 {
		return Function{}, false
	}
	return all[n], true
}

// hostFunc is the function as the engines offer it.
func (f Function) hostFunc() engine.HostFunc {
	return engine.HostFunc{Module: f.Module, Name: f.Name, Params: f.Params, Results: f.Results, Run: f.run}
}

// run calls the function. Whatever it does, the guest either continues or ends.
func (f Function) run(g engine.Guest, stack []uint64) {
	full := engine.Clean(f.Module, engine.MaxName) + "." + engine.Clean(f.Name, engine.MaxName)
	ctx, s := g.Enter(full)
	s.Env.Use.Counter("functions").Add(1)
	g.Spend(functionCall)
	c := &Caller{guest: g, name: full}
	err := c.guard(func() error { return f.Call(ctx, c, stack) })
	c.guest = nil
	g.Leave()
	if err != nil {
		g.Fail(&engine.Fault{Kind: TrapFault, Detail: full + ": " + engine.Clean(err.Error(), engine.MaxDetail), Err: engine.Foreign{Cause: err}})
	}
}

// errCallerDone means a Caller that was kept.
var errCallerDone = errors.New("host: the function has returned; its Caller is of no use any more")

// Caller is the guest that called a [Function]. It checks everything that the
// guest gave, and what it moves costs the guest fuel: when that is used up, or the
// call is out of time, the function is left by a panic, which it must let pass. It
// belongs to the goroutine of the call, and not to be used after Call has returned.
type Caller struct {
	guest engine.Guest
	name  string
	// stopped is the panic that ended the guest.
	stopped any
}

// Read returns a copy of the block at an offset, as the guest's PDK made it. The
// offset 0 is no block and gives no bytes.
func (c *Caller) Read(offset uint64) ([]byte, error) {
	if c.guest == nil {
		return nil, errCallerDone
	}
	if offset == 0 || offset == engine.EmptyBlock {
		return []byte{}, nil
	}
	b, err := c.try(func() []byte { return c.guest.Block(c.name, offset) })
	return append([]byte{}, b...), err
}

// Write puts bytes into a new block, which the guest reads and frees, and returns
// its offset. Without bytes it returns 0.
func (c *Caller) Write(data []byte) (uint64, error) {
	if c.guest == nil {
		return 0, errCallerDone
	}
	if len(data) == 0 {
		return 0, nil
	}
	var offset uint64
	_, err := c.try(func() []byte {
		offset = c.guest.Store(c.name, data)
		return nil
	})
	return offset, err
}

// ReadMemory returns a copy of n bytes of the guest's own memory.
func (c *Caller) ReadMemory(ptr, n uint32) ([]byte, error) {
	b, err := c.memory(ptr, uint64(n))
	return append([]byte{}, b...), err
}

// WriteMemory copies bytes into the guest's own memory.
func (c *Caller) WriteMemory(ptr uint32, data []byte) error {
	b, err := c.memory(ptr, uint64(len(data)))
	copy(b, data)
	return err
}

// memory checks a range before it counts for anything.
func (c *Caller) memory(ptr uint32, n uint64) ([]byte, error) {
	if c.guest == nil {
		return nil, errCallerDone
	}
	if n > engine.MaxMemoryPages<<16 {
		return nil, fmt.Errorf("host: %s: %d bytes are more than a memory has", c.name, n)
	}
	return c.try(func() []byte {
		b := c.guest.Slice(c.name, ptr, int(n)) // at most 4 GiB
		c.guest.Spend(len(b)/64 + 1)
		return b
	})
}

// try runs what may end the guest because of what it gave, and makes that an
// error. What ends it for other reasons continues as a panic.
func (c *Caller) try(run func() []byte) (b []byte, err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if f, ok := r.(*engine.Fault); ok && (f.Kind == TrapFault || f.Kind == TrapMemory) {
			c.guest.Forgive()
			err = fmt.Errorf("host: %s", f.Detail)
			return
		}
		c.stopped = r
		panic(r)
	}()
	return run(), nil
}

// guard runs the embedder's code. A panic of its own is an error; one that ended
// the guest continues, even when the code swallowed it.
func (c *Caller) guard(run func() error) (err error) {
	defer func() {
		r := recover()
		switch {
		case c.stopped != nil:
			panic(c.stopped)
		case r != nil:
			err = fmt.Errorf("%w: panicked: %s", ErrEngine, engine.Clean(fmt.Sprint(r), engine.MaxDetail))
		}
	}()
	return run()
}
