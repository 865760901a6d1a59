package native_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/engine/native"
	"github.com/mortise-dev/mortise/internal/wasm"
)

func TestMain(m *testing.M) {
	compile.Child()
	goleak.VerifyTestMain(m)
}

// guest returns one of the guests of package host.
func guest(t *testing.T, name string) []byte {
	t.Helper()
	bin, err := os.ReadFile(filepath.Join("..", "..", "..", "host", "testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// program compiles a guest that may use some pages of memory.
func program(t *testing.T, bin []byte, kind native.MemoryKind, cache *compile.DiskCache, pages int) engine.Program {
	t.Helper()
	parsed, err := wasm.Parse(bin)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	e, ok := native.Maker{}.Open(compile.Setup{Cache: cache, Logger: logger}).(*native.Engine)
	if !ok {
		t.Fatal("the engine is another one")
	}
	e.Verify = true
	if kind != native.MemoryMapped {
		e.Memory = kind
	}
	var functions []engine.HostFunc
	for _, o := range engine.Offers() {
		o.Run = func(engine.Guest, []uint64) {}
		functions = append(functions, o.HostFunc)
	}
	p, err := e.Compile(t.Context(), engine.Source{
		Name: "m", Wasm: bin, Parsed: parsed, Functions: functions, Logger: logger, Env: &engine.Env{Module: "m", Logger: logger, Use: new(engine.Usage)},
		Limits: engine.Bounds{MemoryPages: pages, OutputBytes: 1 << 20, Timeout: time.Minute, InitTimeout: time.Minute, Fuel: 1 << 40},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// instance makes an instance of a guest.
func instance(t *testing.T, name string, kind native.MemoryKind, pages int) engine.Instance {
	t.Helper()
	i, err := program(t, guest(t, name), kind, nil, pages).Instantiate(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// run calls an export, and wants the instance to be used again.
func run(t *testing.T, i engine.Instance, export string, input []byte) []byte {
	t.Helper()
	var in engine.Input
	var out engine.Outcome
	in.Set([][]byte{input}, len(input))
	output, err := i.Call(t.Context(), &engine.Target{Name: export}, &in, &out)
	if err != nil || out.Unusual() {
		t.Fatalf("%s: %+v, %v", export, out, err)
	}
	return output
}

// TestMemory_Free_together releases memories from several goroutines at once. Nothing does
// that; if something did, the race detector would see a second release here.
func TestMemory_Free_together(t *testing.T) {
	t.Parallel()
	for range 100 {
		if n := native.FreeTogether(4); n != 0 {
			t.Fatalf("%d bytes are left", n)
		}
	}
}

// compiledAt lists the pieces of compiled code in a cache folder.
func compiledAt(t *testing.T, dir string) map[string]os.FileInfo {
	t.Helper()
	out := map[string]os.FileInfo{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && filepath.Base(filepath.Dir(path)) != "known" {
			out[path] = info
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCompileProcess_hit: the engine reads what a child has written.
func TestCompileProcess_hit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := native.PrecompileOnly(t.Context(), dir, guest(t, "pages")); err != nil {
		t.Fatal(err)
	}
	written := compiledAt(t, dir)
	if len(written) != 1 {
		t.Fatalf("the child wrote %d files, want one", len(written))
	}
	for path, info := range written {
		if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	cache, err := compile.OpenCache(dir, native.Maker{}.Name())
	if err != nil {
		t.Fatal(err)
	}
	program(t, guest(t, "pages"), native.MemoryMapped, cache, 1024)
	after := compiledAt(t, dir)
	if len(after) != 2 { // and the kernel
		t.Errorf("%d files after the engine compiled it, want 2", len(after))
	}
	for path, info := range written {
		if after[path] == nil || !after[path].ModTime().Equal(info.ModTime()) {
			t.Errorf("%s was written again", path)
		}
	}
}
