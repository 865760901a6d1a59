package native

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// What follows is for the tests of package host, which see the engine from outside.

// UseMemory makes guests that an engine loads from now on use a kind of memory. It reports whether the engine has it.
func UseMemory(e engine.Engine, kind memoryKind) bool {
	n, ok := e.(*Engine)
	if ok {
		n.memory = kind
	}
	return ok
}

// SetVerifyResets makes each instance that is reset compare all of its memory with what it should be, and panic where
// they differ.
func SetVerifyResets() { verifyResets = true }

// WASISignatures are the parameters and results of WASI's functions.
func WASISignatures() (map[string][2][]byte, error) {
	out := map[string][2][]byte{}
	all, err := wasiFunctions()
	for _, def := range all {
		out[def.Name()] = [2][]byte{def.ParamTypes(), def.ResultTypes()}
	}
	return out, err
}

// FreeTogether makes a memory of each kind, as a guest's and as a kernel's, and releases each
// from n goroutines at once. It returns how many bytes are left in them.
func FreeTogether(n int) (left int) {
	for _, kind := range []memoryKind{0, MemoryCopied} {
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

// KernelWasm is the kernel that answers a part of the imports.
func KernelWasm() []byte { return kernelWasm }

// PrecompileOnly has a child compile what the native engine makes of a module, into a cache folder.
func PrecompileOnly(ctx context.Context, dir string, bin []byte) error {
	cache, err := compile.OpenCache(dir, "native")
	if err != nil {
		return err
	}
	parsed, err := wasm.Parse(bin)
	if err != nil {
		return err
	}
	results, err := rewrite([]*wasm.Module{parsed})
	if err != nil {
		return err
	}
	return new(compile.Process).Precompile(ctx, cache, "m", compile.CompileMode{Features: features}, results[0].Wasm)
}

// DropMemory is a mapping whose pages are dropped after each call, CopyMemory is copied as a whole.
const (
	DropMemory = MemoryBlind
	CopyMemory = MemoryCopied
)
