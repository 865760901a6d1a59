package host_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// TestCompileProcess compiles in a child: this process finds the code in the cache, and adds nothing to it.
func TestCompileProcess(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "cache")
		spec := host.Spec{Name: "echo", Path: wat("echo")}
		alone := newHost(t, host.Config{Engine: hosttest.Engine(e), CacheDir: dir})
		if _, err := alone.Load(t.Context(), spec); err != nil { // the kernel, and the module as it is compiled here
			t.Fatal(err)
		}
		before := compiledFiles(t, dir)
		outside := newHost(t, host.Config{Engine: hosttest.Engine(e), CacheDir: dir, Compile: &host.CompileProcess{}})
		m, err := outside.Load(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if after := compiledFiles(t, dir); after != before {
			t.Errorf("a child and its host compiled what was there: %d files, then %d: their keys differ", before, after)
		}
		call(t, m, "echo", "hello", "hello")
	})
}

// costly passes every bound on what a module consists of, and takes a compiler some 250 MB.
func costly() []byte {
	divisions := bytes.Repeat(enc(konst, 7, 0x6d), 50_000)
	return wasmOf(sec(sType, fn(nil, enc(i32))), sec(sFunc, enc(0)), sec(sExport, export("run", 0, 0)), sec(sCode, body(konst, 1, divisions)))
}

// TestCompileProcess_memory: a module that takes too much memory ends the child, and the host says so and loads others.
func TestCompileProcess_memory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		testskip.Skip(t, "memory is bounded on Linux only")
	}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		h := newHost(t, host.Config{Engine: hosttest.Engine(e), CacheDir: filepath.Join(t.TempDir(), "cache"), Compile: &host.CompileProcess{MemoryBytes: 100 << 20}})
		for range 2 {
			_, err := h.Load(t.Context(), host.Spec{Name: "bomb", Wasm: costly()})
			loaded := (*host.LoadError)(nil)
			if !errors.As(err, &loaded) || !errors.Is(err, host.ErrLimit) || !strings.HasPrefix(err.Error(), `host: module "bomb" was not compiled: the compiling process ended (`) ||
				!strings.Contains(err.Error(), "it may take 104857600 bytes of memory; build it smaller, or raise Config.Compile.MemoryBytes") {
				t.Errorf("error %v", err)
			}
		}
		m, err := h.Load(t.Context(), host.Spec{Name: "echo", Path: wat("echo")})
		if err != nil {
			t.Fatal(err)
		}
		call(t, m, "echo", "hello", "hello")
	})
}

// TestCompileProcess_errors: what a child says about a module is what the engine says; a deadline ends it.
func TestCompileProcess_errors(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		invalid := wasmOf(sec(sType, fn(nil, enc(i32))), sec(sFunc, enc(0)), sec(sExport, export("run", 0, 0)), sec(sCode, body(0x6a)))
		inside := newHost(t, host.Config{Engine: hosttest.Engine(e), CacheDir: filepath.Join(t.TempDir(), "a")})
		outside := newHost(t, host.Config{Engine: hosttest.Engine(e), CacheDir: filepath.Join(t.TempDir(), "b"), Compile: &host.CompileProcess{}})
		_, want := inside.Load(t.Context(), host.Spec{Name: "bad", Wasm: invalid})
		_, got := outside.Load(t.Context(), host.Spec{Name: "bad", Wasm: invalid})
		if want == nil || got == nil || !errors.Is(got, host.ErrInvalid) || got.Error() != want.Error() {
			t.Errorf("%v; want %v", got, want)
		}
		_, err := outside.Load(t.Context(), host.Spec{Name: "slow", Path: wat("many_functions"), Limits: host.Limits{CompileTimeout: time.Millisecond}})
		if !errors.Is(err, host.ErrLimit) || !strings.Contains(err.Error(), "was not compiled within 1ms") {
			t.Errorf("error %v", err)
		}
	})
}

// TestCompileProcess_config: what cannot work is refused by New.
func TestCompileProcess_config(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]host.Config{
		"Compile needs CacheDir":             {Compile: &host.CompileProcess{}},
		"Compile.MemoryBytes -1 is negative": {CacheDir: t.TempDir(), Compile: &host.CompileProcess{MemoryBytes: -1}},
	} {
		if _, err := host.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
