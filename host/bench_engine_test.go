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
	"github.com/mortise-dev/mortise/host/hosttest"
)

// contestant makes one call. It takes no tb: marking it as a helper costs more than
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
func bareModule(tb testing.TB, wasm []byte) api.Module {
	tb.Helper()
	rt := wazero.NewRuntimeWithConfig(tb.Context(), wazero.NewRuntimeConfigCompiler())
	tb.Cleanup(func() { _ = rt.Close(context.WithoutCancel(tb.Context())) })
	m, err := rt.Instantiate(tb.Context(), wasm)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// bareCall calls an export that does nothing on wazero itself, without a context
// that ends, without input or output: the least that a call can cost.
func bareCall(tb testing.TB, wasm []byte, export string, _ []byte) contestant {
	tb.Helper()
	f := bareModule(tb, wasm).ExportedFunction(export)
	stack := make([]uint64, 1)
	ctx := context.Background()
	return func() {
		if err := f.CallWithStack(ctx, stack); err != nil {
			tb.Fatal(err)
		}
	}
}

// bareEcho is bareCall of an export that does nothing, around a copy into and out of a
// fixed place in the memory.
func bareEcho(tb testing.TB, wasm []byte, export string, input []byte) contestant {
	tb.Helper()
	m := bareModule(tb, wasm)
	f, memory, n := m.ExportedFunction(export), m.Memory(), uint32(len(input))
	stack := make([]uint64, 1)
	ctx := context.Background()
	return func() {
		if !memory.Write(0, input) {
			tb.Fatal("the memory is too small")
		}
		if err := f.CallWithStack(ctx, stack); err != nil {
			tb.Fatal(err)
		}
		if view, ok := memory.Read(0, n); !ok || len(bytes.Clone(view)) != len(input) {
			tb.Fatal(ok)
		}
	}
}

// nativeCall is a call of this package, with its limits, fuel and a deadline.
func nativeCall(tb testing.TB, wasm []byte, export string, input []byte) contestant {
	tb.Helper()
	m := load(tb, hosttest.Native, host.Spec{Name: "bench", Wasm: wasm})
	ctx := tb.Context()
	return func() {
		if _, err := m.Call(ctx, export, input); err != nil {
			tb.Fatal(err)
		}
	}
}

// sessionCall is nativeCall on an instance that keeps its state: without putting
// it back, but with limits, fuel and a deadline.
func sessionCall(tb testing.TB, wasm []byte, export string, input []byte) contestant {
	tb.Helper()
	m := load(tb, hosttest.Native, host.Spec{Name: "bench", Wasm: wasm, Grants: host.Grants{Sticky: true}})
	ctx := tb.Context()
	s, err := m.Session(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.WithoutCancel(ctx)) })
	return func() {
		if _, err := s.Call(ctx, export, input); err != nil {
			tb.Fatal(err)
		}
	}
}

// directCall is go-sdk as its users call it, without a deadline: one plugin that is
// made once.
func directCall(tb testing.TB, wasm []byte, export string, input []byte) contestant {
	tb.Helper()
	return sdkCall(tb, wasm, export, input, 0)
}

// deadlineCall is directCall with a deadline.
func deadlineCall(tb testing.TB, wasm []byte, export string, input []byte) contestant {
	tb.Helper()
	return sdkCall(tb, wasm, export, input, time.Second)
}

func sdkCall(tb testing.TB, wasm []byte, export string, input []byte, timeout time.Duration) contestant {
	tb.Helper()
	ctx := tb.Context()
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}, Timeout: uint64(timeout.Milliseconds())}
	p, err := extism.NewPlugin(ctx, manifest, extism.PluginConfig{}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close(context.WithoutCancel(ctx)) })
	return func() {
		if code, out, err := p.CallWithContext(ctx, export, input); err != nil || code != 0 || len(out) != len(input) {
			tb.Fatal(code, len(out), err)
		}
	}
}

// instantiate makes an instance of a module anew on wazero and calls it once, which
// is how else to have fresh state.
func instantiate(tb testing.TB, wasm []byte, export string, _ []byte) contestant {
	tb.Helper()
	ctx := tb.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	tb.Cleanup(func() { _ = rt.Close(context.WithoutCancel(ctx)) })
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		tb.Fatal(err)
	}
	config := wazero.NewModuleConfig().WithName("")
	return func() {
		m, err := rt.InstantiateModule(ctx, code, config)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := m.ExportedFunction(export).Call(ctx); err != nil {
			tb.Fatal(err)
		}
		if err := m.Close(ctx); err != nil {
			tb.Fatal(err)
		}
	}
}

// way is how a contestant calls an export of a module.
type way func(tb testing.TB, wasm []byte, export string, input []byte) contestant

// entrant is a contestant that runs in a process of its own.
type entrant struct {
	// block is how many calls it makes in a turn: enough for some milliseconds, so that
	// its collections are in it.
	block int
	call  way
	// guest is a module of testdata, empty for the one that does nothing.
	guest, export string
	input         []byte
}

func (e entrant) enter(tb testing.TB) contestant {
	tb.Helper()
	wasm := []byte(answer)
	if e.guest != "" {
		wasm = watBytes(tb, e.guest)
	}
	return e.call(tb, wasm, e.export, e.input)
}

// entrants are the contestants of BenchmarkEngine by the name of their contest.
func entrants() map[string]map[string]entrant {
	all := map[string]map[string]entrant{
		"empty": {
			"bare":           {50_000, bareCall, "", "ping", nil},
			"native":         {50_000, nativeCall, "", "ping", nil},
			"gosdk":          {1000, directCall, "", "ping", nil},
			"gosdk-deadline": {1000, deadlineCall, "", "ping", nil},
		},
		"fresh": {
			"bare":        {50_000, bareCall, "dirty", "touch", nil},
			"native":      {5000, nativeCall, "dirty", "touch", nil},
			"instantiate": {200, instantiate, "dirty", "touch", nil},
		},
	}
	for _, n := range pdkSizes() {
		input := make([]byte, n)
		all[fmt.Sprintf("echo_pdk/%d", n)] = map[string]entrant{
			"native": {1000, nativeCall, "echo_pdk", "echo", input},
			"gosdk":  {200, directCall, "echo_pdk", "echo", input},
		}
	}
	for _, n := range bulkSizes() {
		input, block := bytes.Repeat([]byte("mortise "), n/8), 20<<20/n
		all[fmt.Sprintf("echo_bulk/%d", n)] = map[string]entrant{
			"copy":    {block, bareEcho, "dirty", "ok", input},
			"native":  {block, nativeCall, "echo", "echo", input},
			"session": {block, sessionCall, "echo", "echo", input},
		}
	}
	return all
}

func pdkSizes() []int  { return []int{0, 4 << 10, 64 << 10} }
func bulkSizes() []int { return []int{4 << 10, 64 << 10, 1 << 20} }

// contest is what BenchmarkEngine compares: pairs of contestants, the dearer first.
type contest struct {
	name   string
	ratios [][2]string
}

func contests() []contest {
	all := []contest{
		{"empty", [][2]string{{"native", "bare"}, {"gosdk", "native"}, {"gosdk-deadline", "native"}}},
		{"fresh", [][2]string{{"native", "bare"}, {"instantiate", "native"}}},
	}
	for _, n := range pdkSizes() {
		all = append(all, contest{fmt.Sprintf("echo_pdk/%d", n), [][2]string{{"gosdk", "native"}}})
	}
	for _, n := range bulkSizes() {
		all = append(all, contest{fmt.Sprintf("echo_bulk/%d", n), [][2]string{{"native", "copy"}, {"session", "copy"}}})
	}
	return all
}

// BenchmarkEngine compares bare wazero, this package and go-sdk on the same bytes in
// one run. The metrics are medians of blocks. Each contestant that makes garbage, and
// whatever it is compared with, has a process of its own: a program uses one of them,
// and what one leaves to the collector is no burden to another.
func BenchmarkEngine(b *testing.B) {
	for _, c := range contests() {
		b.Run(c.name, func(b *testing.B) {
			costs := competeApart(b, c.name)
			for _, pair := range c.ratios {
				ratio(b, pair[0]+"/"+pair[1], costs[pair[0]], costs[pair[1]])
			}
		})
	}
	b.Run("fresh_go", benchFreshGo)
	b.Run("loop", func(b *testing.B) {
		wasm := watBytes(b, "dirty")
		c := compete(b, 20, bareCall(b, wasm, "work", nil), nativeCall(b, wasm, "work", nil))
		report(b, []string{"bare", "native"}, c)
		ratio(b, "native/bare", c[1], c[0])
	})
}

// benchFreshGo takes a guest in Go and an export that does nothing: what is left is
// its runtime's way in and out, and fresh state.
func benchFreshGo(b *testing.B) {
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
}
