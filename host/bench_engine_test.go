package host_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/mortise-dev/mortise/host"
)

// contestant makes one call. It takes no b: marking it as a helper costs more than
// an empty call.
type contestant func()

// bareCall calls an export that does nothing on wazero itself, without a context
// that ends, without input or output: the least that a call can cost.
func bareCall(b *testing.B) contestant {
	b.Helper()
	rt := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfigCompiler())
	b.Cleanup(func() { _ = rt.Close(context.WithoutCancel(b.Context())) })
	m, err := rt.Instantiate(b.Context(), []byte(answer))
	if err != nil {
		b.Fatal(err)
	}
	f := m.ExportedFunction("ping")
	stack := make([]uint64, 1)
	ctx := b.Context()
	return func() {
		if err := f.CallWithStack(ctx, stack); err != nil {
			b.Fatal(err)
		}
	}
}

// nativeCall is a call of this package, with its limits, fuel and a deadline.
func nativeCall(b *testing.B, wasm []byte, export string, input []byte) contestant {
	b.Helper()
	m := load(b, host.EngineNative, host.Spec{Name: "bench", Wasm: wasm})
	ctx := b.Context()
	return func() {
		if out, err := m.Call(ctx, export, input); err != nil || len(out) != len(input) {
			b.Fatal(len(out), err)
		}
	}
}

// directCall is go-sdk as its users call it: without fuel and without a deadline.
func directCall(b *testing.B, wasm []byte, export string, input []byte) contestant {
	b.Helper()
	ctx := b.Context()
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}}
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

// race lets contestants take turns in blocks of calls and returns the median time
// of a call of each.
func race(b *testing.B, block int, contestants ...contestant) []float64 {
	b.Helper()
	times := make([][]float64, len(contestants))
	for b.Loop() {
		for n, call := range contestants {
			start := time.Now()
			for range block {
				call()
			}
			times[n] = append(times[n], float64(time.Since(start).Nanoseconds())/float64(block))
		}
	}
	medians := make([]float64, len(contestants))
	for n, t := range times {
		slices.Sort(t)
		medians[n] = t[len(t)/2]
	}
	return medians
}

// BenchmarkEngine compares bare wazero, this package and go-sdk on the same bytes in
// one run. An iteration is a block of calls of each, so ns/op says nothing; the
// metrics are the medians of the blocks.
func BenchmarkEngine(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		medians := race(b, 100, bareCall(b), nativeCall(b, []byte(answer), "ping", nil), directCall(b, []byte(answer), "ping", nil))
		b.ReportMetric(medians[0], "bare-ns")
		b.ReportMetric(medians[1]/medians[0], "native/bare")
		report(b, medians[1], medians[2])
	})
	for _, n := range []int{4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("echo_pdk/%d", n), func(b *testing.B) {
			wasm, input := watBytes(b, "echo_pdk"), make([]byte, n)
			medians := race(b, 10, nativeCall(b, wasm, "echo", input), directCall(b, wasm, "echo", input))
			report(b, medians[0], medians[1])
		})
	}
}

func report(b *testing.B, native, direct float64) {
	b.Helper()
	b.ReportMetric(native, "native-ns")
	b.ReportMetric(direct, "gosdk-ns")
	b.ReportMetric(direct/native, "gosdk/native")
}
