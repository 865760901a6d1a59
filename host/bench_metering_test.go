package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/wire"
)

// plainGuest is an instance on wazero itself, with a host module that does what the
// benchmarks' exports call and no more.
type plainGuest struct {
	module        api.Module
	input, output []byte
}

// newPlainGuest makes one. With interruptible it can be stopped the way wazero offers.
func newPlainGuest(b *testing.B, wasm []byte, interruptible bool) *plainGuest {
	b.Helper()
	ctx, p := b.Context(), &plainGuest{}
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(interruptible))
	b.Cleanup(func() { _ = rt.Close(context.WithoutCancel(ctx)) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		b.Fatal(err)
	}
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	env := rt.NewHostModuleBuilder("extism:host/env")
	add := func(m wazero.HostModuleBuilder, name string, params, results []api.ValueType, f func(m api.Module, stack []uint64)) {
		m.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			f(m, stack)
		}), params, results).Export(name)
	}
	add(env, "input_length", nil, []api.ValueType{i64}, func(_ api.Module, stack []uint64) { stack[0] = uint64(len(p.input)) })
	for name, params := range map[string][]api.ValueType{"store_u8": {i64, i32}, "store_u64": {i64, i64}, "error_set": {i64}} {
		add(env, name, params, nil, func(api.Module, []uint64) { panic("not called by these exports") })
	}
	add(env, "alloc", []api.ValueType{i64}, []api.ValueType{i64}, func(api.Module, []uint64) { panic("not called by these exports") })
	bulk := rt.NewHostModuleBuilder("mortise:host/1")
	add(bulk, "input_read", []api.ValueType{i32}, nil, func(m api.Module, stack []uint64) {
		if !m.Memory().Write(api.DecodeU32(stack[0]), p.input) {
			panic("input_read: out of bounds")
		}
	})
	add(bulk, "output_write", []api.ValueType{i32, i32}, nil, func(m api.Module, stack []uint64) {
		out, ok := m.Memory().Read(api.DecodeU32(stack[0]), api.DecodeU32(stack[1]))
		if !ok {
			panic("output_write: out of bounds")
		}
		p.output = append([]byte(nil), out...)
	})
	add(bulk, "messages_read", []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i64}, func(api.Module, []uint64) { panic("not called by these exports") })
	for _, m := range []wazero.HostModuleBuilder{env, bulk} {
		if _, err := m.Instantiate(ctx); err != nil {
			b.Fatal(err)
		}
	}
	var err error
	p.module, err = rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// runner calls an export. An interruptible guest gets a deadline, as it would in use.
func (p *plainGuest) runner(b *testing.B, export string, input []byte, block int, deadline time.Duration) *runner {
	b.Helper()
	f, stack := p.module.ExportedFunction(export), make([]uint64, 1)
	return &runner{block: block, call: func() {
		ctx := b.Context()
		if deadline > 0 {
			limited, cancel := context.WithTimeout(ctx, deadline)
			defer cancel()
			ctx = limited
		}
		p.input = input
		if err := f.CallWithStack(ctx, stack); err != nil || stack[0] != 0 || len(p.output) == 0 {
			b.Fatal(err, stack[0], len(p.output))
		}
	}}
}

// work is what BenchmarkMetering gives a guest, by its exports.
func work(tb testing.TB) map[string][]byte {
	tb.Helper()
	e := event(conversation(40), 0)
	packed, err := wire.MessagePack.Marshal(e)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		tb.Fatal(err)
	}
	var prose strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&prose, "word%d and ", i%700)
	}
	return map[string][]byte{"work_json": text, "work_msgpack": packed, "work_text": []byte(prose.String())}
}

// workGuests are the guests that do it.
func workGuests(tb testing.TB) map[string][]byte {
	tb.Helper()
	return map[string][]byte{"go": built(tb, hookGuest), "c": benchGuest(tb, "work")}
}

// TestBenchWork: the guests do the work that is measured.
func TestBenchWork(t *testing.T) {
	t.Parallel()
	inputs := work(t)
	for name, wasm := range workGuests(t) {
		m := load(t, hosttest.Native, host.Spec{Name: name, Wasm: wasm})
		answer := func(export string) []byte {
			out, err := m.Call(t.Context(), export, inputs[export])
			if err != nil {
				t.Fatalf("%s: %s: %v", name, export, err)
			}
			return out
		}
		for range 3 {
			var want, got struct{ Messages []abi.Message }
			if err := json.Unmarshal(answer("work_json"), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(inputs["work_json"], &want); err != nil || !reflect.DeepEqual(got, want) || len(got.Messages) != 40 {
				t.Errorf("%s: %d messages are not what they were, error %v", name, len(got.Messages), err)
			}
			lines := strings.Split(strings.TrimSpace(string(answer("work_text"))), "\n")
			if len(lines) != 701 || lines[0] != "and 4000" || lines[1] != "word0 6" || lines[700] != "word99 6" {
				t.Errorf("%s: %d lines, %q", name, len(lines), lines[:2])
			}
		}
	}
}

// BenchmarkMetering runs ordinary work of guests in Go and in C on this package, where it is
// metered, has a deadline and gets fresh memory each time; in a session, where it keeps
// its memory; on wazero with WithCloseOnContextDone; and on wazero without any of it.
// The metrics are medians of blocks of calls, as ratios to the last.
func BenchmarkMetering(b *testing.B) {
	inputs := work(b)
	for name, wasm := range workGuests(b) {
		native := load(b, hosttest.Native, host.Spec{Name: name, Wasm: wasm, Grants: host.Grants{Sticky: true}})
		session, err := native.Session(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = session.Close(context.WithoutCancel(b.Context())) })
		for export, input := range inputs {
			if !native.HasExport(export) {
				continue
			}
			b.Run(name+"/"+strings.TrimPrefix(export, "work_"), func(b *testing.B) {
				ctx := b.Context()
				calls := func(call func(context.Context, string, ...[]byte) ([]byte, error)) *runner {
					return &runner{block: 10, call: func() {
						if out, err := call(ctx, export, input); err != nil || len(out) == 0 {
							b.Fatal(len(out), err)
						}
					}}
				}
				metered, keeping := calls(native.Call), calls(session.Call)
				plain := newPlainGuest(b, wasm, false).runner(b, export, input, 10, 0)
				closing := newPlainGuest(b, wasm, true).runner(b, export, input, 3, 2*time.Second)
				raceBoth(b, metered, keeping, plain, closing)
				b.ReportMetric(median(plain.cpu)/1e3, "plain-us")
				b.ReportMetric(median(metered.cpu)/median(plain.cpu), "native/plain")
				b.ReportMetric(median(keeping.cpu)/median(plain.cpu), "session/plain")
				b.ReportMetric(median(closing.cpu)/median(plain.cpu), "closeondone/plain")
			})
		}
	}
}
