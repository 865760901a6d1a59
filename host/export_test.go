package host

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/native"
)

// UsePortableMemory makes guests that h loads from now on use the portable memory.
// It reports whether the engine has one.
func UsePortableMemory(h *Host) bool { return useMemory(h, native.MemoryCopied) }

// UseBlindMemory makes guests that h loads from now on drop their pages after each
// call, as where the kernel does not report which they are.
func UseBlindMemory(h *Host) { useMemory(h, native.MemoryBlind) }

func useMemory(h *Host, kind native.MemoryKind) bool {
	e, ok := h.engine.(*native.Engine)
	if ok {
		e.Memory = kind
	}
	return ok
}

// VerifyResets makes each instance of h that is reset compare all of its memory with what
// it should be, and panic where they differ.
func VerifyResets(h *Host) {
	if e, ok := h.engine.(*native.Engine); ok {
		e.Verify = true
	}
}

// Held counts the calls of m that have an instance, or wait for one to be made for them.
func Held(m *Module) int {
	p := m.Current().pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.slots) - len(p.free)
}

// MakeInstance makes one more instance of m, outside of its pool.
func MakeInstance(ctx context.Context, m *Module) (*Instance, error) {
	i, err := m.Current().prog.Instantiate(ctx, false)
	return &Instance{i}, err
}

// Instance is one that MakeInstance made.
type Instance struct{ i engine.Instance }

// Close closes it.
func (i *Instance) Close(ctx context.Context) error { return i.i.Close(ctx) }

// Offered are the imports that hosts offer to guests, apart from an embedder's functions: their
// signatures by module and name. Those of WASI are the engine's.
func Offered() map[[2]string]string {
	out := map[[2]string]string{}
	for _, module := range []string{engine.ModuleEnv, engine.ModuleHost, engine.ModuleWASI} {
		for name, signature := range offer(module) {
			out[[2]string{module, name}] = signature
		}
	}
	for name, def := range WASI() {
		var f engine.HostFunc
		for _, t := range def.ParamTypes() {
			f.Params = append(f.Params, ValueType(t))
		}
		for _, t := range def.ResultTypes() {
			f.Results = append(f.Results, ValueType(t))
		}
		out[[2]string{engine.ModuleWASI, name}] = f.Type().String()
	}
	return out
}

// WASI are wazero's functions of WASI.
func WASI() map[string]api.FunctionDefinition {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	m, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		panic(err)
	}
	return m.ExportedFunctions()
}

// SectionVectors is the custom section of a module's own test vectors.
const SectionVectors = sectionVectors

// Of is the host of a module.
func Of(m *Module) *Host { return m.host }

// TallyTimes is what the statistics make of calls of which each takes some time, and which are read
// after every third one.
func TallyTimes(calls int, took func(n int) (nanos int64)) int64 {
	var t, all tally
	for n := range calls {
		if !t.begin().IsZero() {
			t.add(time.Duration(took(n)))
		}
		if n%3 == 2 {
			all.collect(&t)
		}
	}
	all.collect(&t)
	return int64(all.time)
}
