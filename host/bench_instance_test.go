package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// goGuest is a guest that the Go toolchain built.
func goGuest(tb testing.TB) []byte {
	tb.Helper()
	bin, err := os.ReadFile(filepath.Join("..", "testdata", "guests", "redact.wasm"))
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

// BenchmarkInstance makes instances of a Go guest: from the template, as this
// package does, and anew, as plain wazero does it for the same bytes. The latter
// has no kernel, no limits and no deadline.
func BenchmarkInstance(b *testing.B) {
	bin := goGuest(b)
	b.Run("template", func(b *testing.B) {
		m := load(b, hosttest.Native, host.Spec{Name: "redact", Wasm: bin})
		b.ReportAllocs()
		for b.Loop() {
			instance, err := host.MakeInstance(b.Context(), m)
			if err != nil {
				b.Fatal(err)
			}
			if err := instance.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		anew := plainInstances(b, bin)
		b.ReportAllocs()
		for b.Loop() {
			if err := anew().Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// plainInstances compiles a Go guest on wazero and returns what makes and
// initialises an instance of it.
func plainInstances(b *testing.B, bin []byte) func() api.Module {
	b.Helper()
	ctx := b.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	b.Cleanup(func() { _ = rt.Close(context.WithoutCancel(ctx)) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		b.Fatal(err)
	}
	guest, err := rt.CompileModule(ctx, bin)
	if err != nil {
		b.Fatal(err)
	}
	offerNothing(b, rt, guest)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	return func() api.Module {
		m, err := rt.InstantiateModule(ctx, guest, config)
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
}

// offerNothing offers the imports that a guest has besides WASI, as functions that
// do nothing: none is called before the first call.
func offerNothing(b *testing.B, rt wazero.Runtime, guest wazero.CompiledModule) {
	b.Helper()
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range guest.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == "wasi_snapshot_preview1" {
			continue
		}
		if builders[module] == nil {
			builders[module] = rt.NewHostModuleBuilder(module)
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(
			func(context.Context, api.Module, []uint64) {}), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, builder := range builders {
		if _, err := builder.Instantiate(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
