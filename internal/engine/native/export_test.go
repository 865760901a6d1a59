package native

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// FreeTogether makes a memory of each kind, as a guest's and as a kernel's, and releases each
// from n goroutines at once. It returns how many bytes are left in them.
func FreeTogether(n int) (left int) {
	for _, kind := range []MemoryKind{MemoryMapped, MemoryCopied} {
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

// FaultsCounted is what the engine asks the kernel when it starts.
func FaultsCounted() bool { return faultsAreTold() }

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
