package host

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// UsePortableMemory makes guests that h loads from now on use the portable memory.
// It reports whether the engine has one.
func UsePortableMemory(h *Host) bool {
	e, ok := h.engine.(*nativeEngine)
	if ok {
		e.memory = memoryCopied
	}
	return ok
}

// VerifyResets makes each instance that is put back compare all of its memory with what
// it should be, and panic where they differ.
func VerifyResets() { verifyResets = true }

// idleInstance is the first instance of m that is not in a call, nil without one.
func idleInstance(m *Module) *nativeInstance {
	m.Stats() // puts the instance where it can be found
	p := m.Current().pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range p.slots {
		if i, ok := p.slots[n].inst.(*nativeInstance); ok {
			return i
		}
	}
	return nil
}

// MakeInstance makes one more instance of m, outside of its pool.
func MakeInstance(ctx context.Context, m *Module) (*Instance, error) {
	i, err := m.Current().prog.instantiate(ctx, false)
	return &Instance{i}, err
}

// Instance is one that MakeInstance made.
type Instance struct{ i instance }

// Close closes it.
func (i *Instance) Close(ctx context.Context) error { return i.i.close(ctx) }

// FreeTogether makes a memory of each kind, as a guest's and as a kernel's, and releases each
// from n goroutines at once. It returns how many bytes are left in them.
func FreeTogether(n int) (left int) {
	for _, kind := range []memoryKind{0, memoryCopied} {
		guest, kernel := newGuestMemory(1<<20, kind), &kernelMemory{memory: newGuestMemory(1<<20, kind)}
		guest.Reallocate(1 << 16)
		kernel.Reallocate(1 << 16)
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { guest.Free(); kernel.Free() })
		}
		wg.Wait()
		left += len(guest.bytes()) + len(kernel.bytes())
	}
	return left
}

// Offered are the imports that hosts offer to guests, apart from an embedder's functions: their
// signatures by module and name. Those of WASI are the engine's.
func Offered() (map[[2]string]string, error) {
	out := map[[2]string]string{}
	for _, module := range []string{moduleEnv, moduleHost, moduleWASI} {
		for name, signature := range offer(module) {
			out[[2]string{module, name}] = signature
		}
	}
	all, err := wasiFunctions()
	for _, def := range all {
		params, results := def.ParamTypes(), def.ResultTypes()
		in, of := make([]ValueType, len(params)), make([]ValueType, len(results))
		for i, t := range params {
			in[i] = ValueType(t)
		}
		for i, t := range results {
			of[i] = ValueType(t)
		}
		out[[2]string{moduleWASI, def.Name()}] = funcType(in, of).String()
	}
	return out, err
}

// WASIParams are the names of a WASI function's parameters.
func WASIParams(name string) []string {
	all, _ := wasiFunctions()
	for _, def := range all {
		if def.Name() == name {
			return def.ParamNames()
		}
	}
	return nil
}

// Of is the host of a module.
func Of(m *Module) *Host { return m.host }

// KernelWasm is the kernel that answers a part of the imports.
func KernelWasm() []byte { return kernelWasm }

// PrecompileOnly has a child compile what the native engine makes of a module, into a cache folder.
func PrecompileOnly(ctx context.Context, dir string, bin []byte) error {
	cache, err := openCache(dir, EngineNative)
	if err != nil {
		return err
	}
	parsed, err := wasm.Parse(bin)
	if err != nil {
		return err
	}
	results, unmetered, err := rewrite([]*wasm.Module{parsed})
	if err != nil {
		return err
	}
	p := &nativeProgram{unmetered: unmetered}
	return new(CompileProcess).precompile(ctx, cache, "m", p.mode(), results[0].Wasm)
}

// ChildEnvironment is what a compiling process gets of the environment.
func ChildEnvironment() []string { return childEnv() }

// TallyTimes is what the statistics make of calls of which each takes some time, and which are read
// after every third one.
func TallyTimes(calls int, took func(n int) (nanos int64)) int64 {
	var t tally
	var c counters
	for n := range calls {
		if !t.begin().IsZero() {
			t.took(took(n))
		}
		if n%3 == 2 {
			t.flush(&c)
		}
	}
	t.flush(&c)
	return c.nanos.Load()
}
