package host

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/native"
)

// UsePortableMemory makes guests that h loads from now on use the portable memory.
// It reports whether the engine has one.
func UsePortableMemory(h *Host) bool {
	return native.UseMemory(h.engine, native.MemoryCopied)
}

// VerifyResets makes each instance that is reset compare all of its memory with what
// it should be, and panic where they differ.
func VerifyResets() { native.SetVerifyResets() }

// idleInstance is the first instance of m that is not in a call, nil without one.
func idleInstance(m *Module) engine.Instance {
	p := m.Current().pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range p.slots {
		if i := p.slots[n].inst; i != nil {
			return i
		}
	}
	return nil
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
func Offered() (map[[2]string]string, error) {
	out := map[[2]string]string{}
	for _, module := range []string{engine.ModuleEnv, engine.ModuleHost, engine.ModuleWASI} {
		for name, signature := range offer(module) {
			out[[2]string{module, name}] = signature
		}
	}
	all, err := native.WASISignatures()
	for name, sig := range all {
		params, results := sig[0], sig[1]
		in, of := make([]ValueType, len(params)), make([]ValueType, len(results))
		for i, t := range params {
			in[i] = ValueType(t)
		}
		for i, t := range results {
			of[i] = ValueType(t)
		}
		out[[2]string{engine.ModuleWASI, name}] = engine.FuncType(in, of).String()
	}
	return out, err
}

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
