package host_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/host"
)

// contestant makes one call. It takes no b: marking it as a helper costs more than
// an empty call.
type contestant func()

// cost is what a call of a contestant takes: time on the clock, and time of all
// threads of the process, which is where a collector at work shows.
type cost struct{ wall, cpu float64 }

// compete lets contestants take turns in blocks of calls and returns the median
// cost of a call of each.
func compete(b *testing.B, block int, contestants ...contestant) []cost {
	b.Helper()
	runners := make([]*runner, len(contestants))
	for n, call := range contestants {
		runners[n] = &runner{call: call, block: block}
	}
	raceBoth(b, runners...)
	costs := make([]cost, len(contestants))
	for n, r := range runners {
		costs[n] = cost{median(r.wall), median(r.cpu)}
	}
	return costs
}

// report writes the cost of contestants and the ratios between them.
func report(b *testing.B, names []string, costs []cost) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // a block of each: it says nothing
	for n, c := range costs {
		b.ReportMetric(c.wall, names[n]+"-ns")
		b.ReportMetric(c.cpu, names[n]+"-cpu-ns")
	}
}

// ratio writes how much more one contestant takes than another.
func ratio(b *testing.B, name string, more, less cost) {
	b.Helper()
	b.ReportMetric(more.wall/less.wall, name)
	if less.cpu > 0 {
		b.ReportMetric(more.cpu/less.cpu, name+"-cpu")
	}
}

// bareModule instantiates a module on wazero itself.
func bareModule(b *testing.B, wasm []byte) api.Module {
	b.Helper()
	rt := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfigCompiler())
	b.Cleanup(func() { _ = rt.Close(context.WithoutCancel(b.Context())) })
	m, err := rt.Instantiate(b.Context(), wasm)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// bareCall calls an export that does nothing on wazero itself, without a context
// that ends, without input or output: the least that a call can cost.
func bareCall(b *testing.B, wasm []byte, export string) contestant {
	b.Helper()
	f := bareModule(b, wasm).ExportedFunction(export)
	stack := make([]uint64, 1)
	ctx := context.Background()
	return func() {
		if err := f.CallWithStack(ctx, stack); err != nil {
			b.Fatal(err)
		}
	}
}

// bareEcho is bareCall around a copy into and out of a fixed place in the memory.
func bareEcho(b *testing.B, input []byte) contestant {
	b.Helper()
	m := bareModule(b, watBytes(b, "dirty")) // ok does nothing
	f, memory, n := m.ExportedFunction("ok"), m.Memory(), uint32(len(input))
	stack := make([]uint64, 1)
	ctx := context.Background()
	return func() {
		if !memory.Write(0, input) {
			b.Fatal("the memory is too small")
		}
		if err := f.CallWithStack(ctx, stack); err != nil {
			b.Fatal(err)
		}
		if view, ok := memory.Read(0, n); !ok || len(bytes.Clone(view)) != len(input) {
			b.Fatal(ok)
		}
	}
}

// nativeCall is a call of this package, with its limits, fuel and a deadline.
func nativeCall(b *testing.B, wasm []byte, export string, input []byte) contestant {
	b.Helper()
	m := load(b, host.EngineNative, host.Spec{Name: "bench", Wasm: wasm})
	ctx := b.Context()
	return func() {
		if _, err := m.Call(ctx, export, input); err != nil {
			b.Fatal(err)
		}
	}
}

// sessionCall is nativeCall on an instance that keeps its state: without putting
// it back, but with limits, fuel and a deadline.
func sessionCall(b *testing.B, wasm []byte, export string, input []byte) contestant {
	b.Helper()
	m := load(b, host.EngineNative, host.Spec{Name: "bench", Wasm: wasm, Grants: host.Grants{Sticky: true}})
	ctx := b.Context()
	s, err := m.Session(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(context.WithoutCancel(ctx)) })
	return func() {
		if _, err := s.Call(ctx, export, input); err != nil {
			b.Fatal(err)
		}
	}
}

// directCall is go-sdk as its users call it, without a deadline or with one.
func directCall(b *testing.B, wasm []byte, export string, input []byte, timeout time.Duration) contestant {
	b.Helper()
	ctx := b.Context()
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}, Timeout: uint64(timeout.Milliseconds())}
	p, err := extism.NewPlugin(ctx, manifest, extism.PluginConfig{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close(context.WithoutCancel(ctx)) })
	return func() {
		if code, out, err := p.CallWithContext(ctx, export, input); err != nil || code != 0 || len(out) != len(input) {
			b.Fatal(code, len(out), err)
		}
	}
}

// instantiate makes an instance of a module anew on wazero and calls it once, which
// is how else to have fresh state.
func instantiate(b *testing.B, wasm []byte, export string) contestant {
	b.Helper()
	ctx := b.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	b.Cleanup(func() { _ = rt.Close(context.WithoutCancel(ctx)) })
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		b.Fatal(err)
	}
	config := wazero.NewModuleConfig().WithName("")
	return func() {
		m, err := rt.InstantiateModule(ctx, code, config)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.ExportedFunction(export).Call(ctx); err != nil {
			b.Fatal(err)
		}
		if err := m.Close(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEngine compares bare wazero, this package and go-sdk on the same bytes in
// one run. The metrics are medians of blocks.
func BenchmarkEngine(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		wasm := []byte(answer)
		c := compete(b, 1000, bareCall(b, wasm, "ping"), nativeCall(b, wasm, "ping", nil),
			directCall(b, wasm, "ping", nil, 0), directCall(b, wasm, "ping", nil, time.Second))
		report(b, []string{"bare", "native", "gosdk", "gosdk-deadline"}, c)
		ratio(b, "native/bare", c[1], c[0])
		ratio(b, "gosdk/native", c[2], c[1])
		ratio(b, "gosdk-deadline/native", c[3], c[1])
	})
	b.Run("fresh", func(b *testing.B) {
		wasm := watBytes(b, "dirty")
		c := compete(b, 200, bareCall(b, wasm, "touch"), nativeCall(b, wasm, "touch", nil), instantiate(b, wasm, "touch"))
		report(b, []string{"bare", "native", "instantiate"}, c)
		ratio(b, "native/bare", c[1], c[0])
		ratio(b, "instantiate/native", c[2], c[1])
	})
	b.Run("fresh_go", func(b *testing.B) {
		// A guest in Go and an export that does nothing: what is left is its runtime's
		// way in and out, and fresh state.
		wasm := built(b, hookGuest)
		plain := newPlainGuest(b, wasm, false).module.ExportedFunction("noop")
		stack := make([]uint64, 1)
		anew := plainInstances(b, wasm)
		var again []float64
		remake := func() {
			start := cpuTime()
			if err := anew().Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			again = append(again, float64((cpuTime() - start).Nanoseconds()))
		}
		c := compete(b, 50, func() {
			if err := plain.CallWithStack(context.Background(), stack); err != nil {
				b.Fatal(err)
			}
		}, nativeCall(b, wasm, "noop", nil))
		for range 20 {
			remake()
		}
		report(b, []string{"bare", "native"}, c)
		b.ReportMetric(median(again), "instantiate-cpu-ns")
		b.ReportMetric(median(again)/c[1].cpu, "instantiate/native-cpu")
	})
	b.Run("loop", func(b *testing.B) {
		wasm := watBytes(b, "dirty")
		c := compete(b, 20, bareCall(b, wasm, "work"), nativeCall(b, wasm, "work", nil))
		report(b, []string{"bare", "native"}, c)
		ratio(b, "native/bare", c[1], c[0])
	})
	for _, n := range []int{0, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("echo_pdk/%d", n), func(b *testing.B) {
			wasm, input := watBytes(b, "echo_pdk"), make([]byte, n)
			c := compete(b, 20, nativeCall(b, wasm, "echo", input), directCall(b, wasm, "echo", input, 0))
			report(b, []string{"native", "gosdk"}, c)
			ratio(b, "gosdk/native", c[1], c[0])
		})
	}
	for _, n := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("echo_bulk/%d", n), func(b *testing.B) {
			input := bytes.Repeat([]byte("mortise "), n/8)
			wasm := watBytes(b, "echo")
			c := compete(b, 50, bareEcho(b, input), nativeCall(b, wasm, "echo", input), sessionCall(b, wasm, "echo", input))
			report(b, []string{"copy", "native", "session"}, c)
			ratio(b, "native/copy", c[1], c[0])
			ratio(b, "session/copy", c[2], c[0])
		})
	}
}
