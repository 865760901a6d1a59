package meter_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// Section numbers, in the order in which they stand in a module.
const (
	sType, sImport, sFunc, sTable, sMemory = 1, 2, 3, 4, 5
	sTag, sGlobal, sExport, sStart, sElem  = 13, 6, 7, 8, 9
	sCount, sCode, sData, sCustom          = 12, 10, 11, 0
)

// Value types and the opcodes that the tests write often.
const (
	i32, i64, funcref = 0x7f, 0x7e, 0x70
	end, loop, get    = 0x0b, 0x03, 0x20
	konst, drop       = 0x41, 0x1a
)

// enc joins bytes. An int is one byte, a string is its bytes.
func enc(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			out = append(out, byte(p))
		case string:
			out = append(out, p...)
		case []byte:
			out = append(out, p...)
		default:
			panic("enc: int, string or []byte")
		}
	}
	return out
}

// leb encodes an unsigned number.
func leb(v int) []byte {
	var out []byte
	for ; v >= 0x80; v >>= 7 {
		out = append(out, byte(v)|0x80)
	}
	return append(out, byte(v))
}

// sized puts a length before content: a name, or a function body.
func sized(parts ...any) []byte {
	content := enc(parts...)
	return enc(leb(len(content)), content)
}

// vec puts the number of items before them.
func vec(items ...[]byte) []byte { return enc(leb(len(items)), bytes.Join(items, nil)) }

func sec(id int, items ...[]byte) []byte { return enc(id, sized(vec(items...))) }

// module joins sections.
func module(sections ...[]byte) []byte {
	return enc("\x00asm\x01\x00\x00\x00", bytes.Join(sections, nil))
}

// body is a function without locals of its own; its end is added.
func body(ops ...any) []byte { return sized(0, enc(ops...), end) }

// fn is a signature.
func fn(params, results []byte) []byte {
	return enc(0x60, leb(len(params)), params, leb(len(results)), results)
}

func export(name string, kind, index int) []byte { return enc(sized(name), kind, leb(index)) }

func features() api.CoreFeatures {
	return api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst |
		experimental.CoreFeaturesExceptionHandling | experimental.CoreFeaturesThreads
}

func options() meter.Options {
	return meter.Options{RefillModule: "mortise:meter", RefillName: "refill"}
}

// rewrite parses and rewrites.
func rewrite(bin []byte, opts meter.Options) (*meter.Result, error) {
	m, err := wasm.Parse(bin)
	if err != nil {
		return nil, err
	}
	return meter.Rewrite(m, opts)
}

// guest is an instance, metered or plain.
type guest struct {
	api.Module

	counter api.MutableGlobal
	refills int
	// stop is what the refill ends the guest with, if anything.
	stop error
}

const plenty = 1 << 40

// fuel is what was used since the last look.
func (g *guest) fuel() int64 {
	used := plenty - int64(g.counter.Get())
	g.counter.Set(plenty)
	return used
}

// start instantiates a module with imports env.one, which returns 1, and the refill.
func start(tb testing.TB, bin []byte, metered bool) *guest {
	tb.Helper()
	r := &meter.Result{Wasm: bin}
	if metered {
		var err error
		if r, err = rewrite(bin, options()); err != nil {
			tb.Fatal(err)
		}
	}
	return startRewritten(tb, r)
}

func startRewritten(tb testing.TB, r *meter.Result) *guest {
	tb.Helper()
	g, bin, counter, metered := &guest{}, r.Wasm, r.Counter, r.Counter != ""
	rt := wazero.NewRuntimeWithConfig(tb.Context(), wazero.NewRuntimeConfig().WithCoreFeatures(features()))
	tb.Cleanup(func() { _ = rt.Close(context.WithoutCancel(tb.Context())) })
	one := func(context.Context) int32 { return 1 }
	if _, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(one).Export("one").Instantiate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	refill := func(_ context.Context, m api.Module) {
		g.refills++
		if g.stop != nil {
			panic(g.stop)
		}
		if global, ok := m.ExportedGlobal(counter).(api.MutableGlobal); ok {
			global.Set(plenty)
		}
	}
	if _, err := rt.NewHostModuleBuilder("mortise:meter").NewFunctionBuilder().WithFunc(refill).Export("refill").Instantiate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	var err error
	if g.Module, err = rt.InstantiateWithConfig(tb.Context(), bin, wazero.NewModuleConfig().WithName("")); err != nil {
		tb.Fatalf("metered %t: %v", metered, err)
	}
	if err := finish(tb.Context(), g.Module, r); err != nil {
		tb.Fatal(err)
	}
	if metered {
		var ok bool
		if g.counter, ok = g.ExportedGlobal(counter).(api.MutableGlobal); !ok {
			tb.Fatalf("no counter %q", counter)
		}
		g.counter.Set(plenty)
	}
	return g
}

// finish does what the rewriter leaves to the host: data, then the start function.
func finish(ctx context.Context, m api.Module, r *meter.Result) error {
	for _, d := range r.Data {
		if !m.Memory().Write(d.Offset, d.Bytes) {
			return fmt.Errorf("data[%d]: out of bounds memory access", d.Index)
		}
	}
	if r.Start == "" {
		return nil
	}
	_, err := m.ExportedFunction(r.Start).Call(ctx)
	return err
}

// run calls an export.
func (g *guest) run(tb testing.TB, export string, args ...uint64) []uint64 {
	tb.Helper()
	out, err := g.ExportedFunction(export).Call(tb.Context(), args...)
	if err != nil {
		tb.Fatalf("%s%v: %v", export, args, err)
	}
	return out
}
