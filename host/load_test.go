package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestHost_Load_refuses checks the whole sentence of every refusal.
func TestHost_Load_refuses(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	echo := watBytes(t, "echo")
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	folder := filepath.Join(dir, "folder.wasm")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	sum := "3b0c0b0d4f0f3cd8b5b3a1de3b0f2ab4d2e2d6a8a3d1cf4dc0c3b5b2a1908f7e"
	inspected, err := host.Inspect("echo", echo)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec host.Spec
		err  error
		want string // without "host: module "
	}{
		{"missing", host.Spec{Path: "nowhere/x.wasm"}, host.ErrNotFound, `"x" (nowhere/x.wasm) was not found; check the path, or build the module first`},
		{"directory", host.Spec{Path: folder}, host.ErrUnreadable, `"folder" (` + folder + `) is a directory; give the path of the .wasm file in it`},
		{"device", host.Spec{Path: os.DevNull}, host.ErrUnreadable, `"null" (` + os.DevNull + `) is not a regular file; give the path of a .wasm file`},
		{"empty file", host.Spec{Path: write("e.wasm", nil)}, host.ErrNotCore, `"e" (` + filepath.Join(dir, "e.wasm") + `) is empty; build the module again`},
		{"no bytes", host.Spec{Name: "n", Wasm: []byte{}}, host.ErrNotCore, `"n" is empty; build the module again`},
		{"text", host.Spec{Name: "t", Wasm: []byte("(module)")}, host.ErrNotCore, `"t" is WebAssembly in text, not a binary; make a binary of it with wat2wasm`},
		{"component", host.Spec{Name: "c", Wasm: []byte("\x00asm\x0d\x00\x01\x00")}, host.ErrNotCore, `"c" is a WebAssembly component; build a core module (for Rust: --target wasm32-unknown-unknown or wasm32-wasip1)`},
		{"version", host.Spec{Name: "v", Wasm: []byte("\x00asm\x02\x00\x00\x00")}, host.ErrNotCore, `"v" has an unknown version of the WebAssembly format; build a core module of version 1`},
		{"truncated", host.Spec{Path: write("cut.wasm", echo[:len(echo)/2])}, host.ErrNotCore, `"cut" (` + filepath.Join(dir, "cut.wasm") + `) is cut off at byte 121; copy or build it again`},
		{"malformed", host.Spec{Name: "m", Wasm: []byte("\x00asm\x01\x00\x00\x00\x0e\x00")}, host.ErrNotCore, `"m" is malformed: offset 8: malformed: unknown section 14; build it again with a current toolchain`},
		{"too large", host.Spec{Name: "l", Wasm: echo, Limits: host.Limits{ModuleBytes: 20}}, host.ErrLimit, `"l" is larger than 20 bytes; strip it, or raise Limits.ModuleBytes`},
		{"file too large", host.Spec{Path: wat("echo"), Limits: host.Limits{ModuleBytes: 20}}, host.ErrLimit, `"echo" (` + wat("echo") + `) is larger than 20 bytes; strip it, or raise Limits.ModuleBytes`},
		{"checksum", host.Spec{Path: wat("echo"), SHA256: "sha256:" + sum}, host.ErrChecksum, `"echo" (` + wat("echo") + `) has SHA-256 ` + inspected.SHA256 + `, not ` + sum + `; fetch the module again, or correct the checksum if the change is wanted`},
		{"no checksum", host.Spec{Path: wat("echo"), SHA256: "abc"}, host.ErrChecksum, `"echo" (` + wat("echo") + `) has a Spec.SHA256 that is not 64 hexadecimal digits; write the hash as sha256sum prints it`},
		{"describe missing", host.Spec{Path: wat("no_describe"), Require: []string{"describe"}}, host.ErrExport, `"no_describe" (` + wat("no_describe") + `) does not export "describe"; add the function to the plugin, or do not use it for this`},
		{"export is a memory", host.Spec{Path: wat("no_describe"), Require: []string{"memory"}}, host.ErrExport, `"no_describe" (` + wat("no_describe") + `) exports "memory" as a memory; export a function of that name`},
		{"export takes", host.Spec{Path: wat("no_describe"), Require: []string{"takes"}}, host.ErrExport, `"no_describe" (` + wat("no_describe") + `) exports "takes" as (i32) -> i32, not () -> i32; give the function no parameters and an i32 as result`},
		{"export void", host.Spec{Path: wat("no_describe"), Require: []string{"void"}}, host.ErrExport, `"no_describe" (` + wat("no_describe") + `) exports "void" as () -> (), not () -> i32; give the function no parameters and an i32 as result`},
		{"memory at start", host.Spec{Path: wat("memory_start")}, host.ErrLimit, `"memory_start" (` + wat("memory_start") + `) needs 2000 pages of memory at its start and may use 1024; raise Limits.MemoryPages, or build it with a smaller stack and heap`},
		{"table at start", host.Spec{Path: wat("table_start")}, host.ErrLimit, `"table_start" (` + wat("table_start") + `) has tables of more than 1048576 elements; build it with smaller tables`},
		{"memory import", host.Spec{Path: wat("memory_import")}, host.ErrImport, `"memory_import" (` + wat("memory_import") + `) imports the memory env.memory, which is not offered; define it in the module (for a memory: link without --import-memory)`},
		{"unknown import", host.Spec{Path: wat("import_unknown")}, host.ErrImport, `"import_unknown" (` + wat("import_unknown") + `) imports env.launch_\x1b[31m, which is not offered; import only from extism:host/env, mortise:host/1 and wasi_snapshot_preview1, link a module of that name (Spec.Links), or grant the function (Grants.Functions)`},
		{"import signature", host.Spec{Path: wat("import_signature")}, host.ErrImport, `"import_signature" (` + wat("import_signature") + `) imports extism:host/env.alloc as (i32) -> i32, but it is (i64) -> i64; build it with a PDK of the same version as the host`},
		{"old extism", host.Spec{Path: wat("old_extism")}, host.ErrImport, `"old_extism" (` + wat("old_extism") + `) uses the import names that Extism had before 1.0 (env.extism_...); build it again with a current Extism PDK`},
		{"proxy-wasm", host.Spec{Path: wat("proxy_wasm")}, host.ErrImport, `"proxy_wasm" (` + wat("proxy_wasm") + `) is a proxy-wasm filter; build it as an Extism plugin; proxy-wasm is another convention`},
		{"old WASI", host.Spec{Path: wat("wasi_unstable")}, host.ErrImport, `"wasi_unstable" (` + wat("wasi_unstable") + `) imports wasi_unstable.proc_exit of a WASI before preview 1; build it again for wasm32-wasip1`},
		{"type error", host.Spec{Path: wat("invalid_code")}, host.ErrInvalid, `"invalid_code" (` + wat("invalid_code") + `) is refused by the engine: invalid function[0] export["run"]: cannot use i64 as result[0] type i32; build it again with a current toolchain, without proposals beyond WebAssembly 2.0`},
		{"name of a guest", host.Spec{Name: "a\nb\x1b[0m\xff", Wasm: []byte{}}, host.ErrNotCore, `"a\\nb\\x1b[0m\\xff" is empty; build the module again`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := h.Load(t.Context(), tt.spec)
			var bad *host.LoadError
			if m != nil || !errors.As(err, &bad) || !errors.Is(err, tt.err) {
				t.Fatalf("got %v, %v; want %v", m, err, tt.err)
			}
			if want := "host: module " + tt.want; err.Error() != want {
				t.Errorf("\n got %s\nwant %s", err, want)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("more than one line: %q", err.Error())
			}
		})
	}
}

func TestHost_New_refuses(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil { // that is what is tested
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		cfg  host.Config
		want string
	}{
		"negative":     {host.Config{Limits: host.Limits{LogBytes: -1}}, "host: config: Limits.LogBytes -1 is negative; use 0 for the default"},
		"few pages":    {host.Config{Limits: host.Limits{MemoryPages: 16}}, "host: config: Limits.MemoryPages 16 is not between 17 and 65536"},
		"many pages":   {host.Config{Limits: host.Limits{MemoryPages: 65537}}, "host: config: Limits.MemoryPages 65537 is not between 17 and 65536"},
		"many places":  {host.Config{Limits: host.Limits{Instances: math.MaxInt}}, fmt.Sprintf("host: config: Limits.Instances %d is more than 65536", math.MaxInt)},
		"large module": {host.Config{Limits: host.Limits{ModuleBytes: math.MaxInt}}, fmt.Sprintf("host: config: Limits.ModuleBytes %d is more than 1073741824", math.MaxInt)},
		"large input":  {host.Config{Limits: host.Limits{MemoryPages: 32, InputBytes: 1<<20 + 1}}, "host: config: Limits.InputBytes 1048577 is more than half of MemoryPages (2097152 bytes)"},
		"open cache":   {host.Config{CacheDir: open}, "host: config: CacheDir: others can write to " + open + ", and so run code here; use chmod 700"},
		"cache a file": {host.Config{CacheDir: file}, "host: config: CacheDir " + file + ": mkdir " + file + ": not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := host.New(tt.cfg); err == nil || err.Error() != tt.want {
				t.Errorf("\n got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// It sets an environment variable, so it does not run in parallel.
func TestHost_New_warnsOfWASIOutput(t *testing.T) {
	t.Setenv("EXTISM_ENABLE_WASI_OUTPUT", "1")
	var lines logBuffer
	newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Extism), Logger: logger(&lines, slog.LevelWarn)})
	want := `level=WARN msg="guests write to stdout and stderr of this process" variable=EXTISM_ENABLE_WASI_OUTPUT hint="unset it"` + "\n"
	if lines.String() != want {
		t.Errorf("got %s\nwant %s", lines.String(), want)
	}
}

func TestHost_Load_specErrors(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	for want, spec := range map[string]host.Spec{
		"host: spec: Name is empty and there is no Path to take it from":                               {Wasm: []byte{}},
		`host: spec of "x": neither Path nor Wasm is set`:                                              {Name: "x"},
		`host: spec of "x": Limits.Timeout -1 is negative; use 0 for the default`:                      {Name: "x", Wasm: []byte{}, Limits: host.Limits{Timeout: -1}},
		`host: spec of "x": Limits.InputBytes 557057 is more than half of MemoryPages (1114112 bytes)`: {Name: "x", Wasm: []byte{}, Limits: host.Limits{MemoryPages: 17, InputBytes: 557057}},
	} {
		if _, err := h.Load(t.Context(), spec); err == nil || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
}

func TestHost_Load_describesTheModule(t *testing.T) {
	t.Parallel()
	var seen []host.CompileInfo
	dir := filepath.Join(t.TempDir(), "cache")
	cfg := host.Config{CacheDir: dir, OnCompile: func(c host.CompileInfo) { seen = append(seen, c) }}
	for n := range 2 {
		h := newHost(t, cfg)
		in, err := host.Inspect("echo", watBytes(t, "echo"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := h.Load(t.Context(), host.Spec{Path: wat("echo"), SHA256: strings.ToUpper(in.SHA256), Require: []string{"echo", "nothing"}})
		if err != nil {
			t.Fatal(err)
		}
		info := m.Info()
		if m.Name() != "echo" || info.SHA256 != in.SHA256 || info.Size != in.Size || info.Engine != hosttest.Native ||
			info.Compile <= 0 || info.Cached != (n == 1) || strings.Join(info.Exports, " ") != "echo nothing" {
			t.Errorf("%+v", info)
		}
		if !m.HasExport("echo") || m.HasExport("memory") || m.HasExport("absent") || m.Section("name") == nil || m.Section("mortise") != nil {
			t.Error("exports or sections are wrong")
		}
		call(t, m, "nothing", "", "")
		last := seen[2*n:]
		if len(last) != 2 || last[0].Done || !last[1].Done || last[1].Duration <= 0 || last[0].Size != in.Size || last[0].Cached != (n == 1) {
			t.Errorf("%+v", last)
		}
	}
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("cache folder: %v, %v", st.Mode(), err)
	}
}

// TestHost_Load_ownBytes: the embedder may use its bytes for something else once Load has returned, also where an
// instance is made from them later.
func TestHost_Load_ownBytes(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		bin := withSection(watBytes(t, "stateful"), "note", "text")
		m := load(t, e, host.Spec{Name: "main", Wasm: bin})
		clear(bin)
		var refused *host.GuestError
		for range 3 {
			if _, err := m.Call(t.Context(), "initialized", nil); !errors.As(err, &refused) || refused.Code != 1 {
				t.Error(err)
			}
		}
		if got := string(m.Section("note")); got != "text" {
			t.Errorf("the section is %q", got)
		}
	})
	main, base, middle := watBytes(t, "link_main"), watBytes(t, "link_base"), watBytes(t, "link_middle")
	m := load(t, hosttest.Native, host.Spec{Name: "main", Wasm: main, Links: []host.Link{{Name: "base", Wasm: base}, {Name: "middle", Wasm: middle}}})
	for _, bin := range [][]byte{main, base, middle} {
		clear(bin)
	}
	for range 3 { // each gets an instance of its own
		call(t, m, "answer", "", "base")
	}
}

// TestHost_Load_largeNumbers: the largest numbers that a limit takes do not turn into small ones.
func TestHost_Load_largeNumbers(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		most := time.Duration(math.MaxInt64)
		m := load(t, e, host.Spec{Path: wat("generation"), Limits: host.Limits{
			MemoryPages: 1 << 16, InputBytes: 1 << 31, OutputBytes: math.MaxInt, Timeout: most, Fuel: math.MaxInt64, InitTimeout: most, CompileTimeout: most,
			Instances: 1 << 16, IdleTimeout: most, Sessions: math.MaxInt, StderrBytes: math.MaxInt, LogBytes: math.MaxInt, VarBytes: math.MaxInt, ModuleBytes: 1 << 30,
		}})
		call(t, m, "work", "", "1")
		call(t, m, "count", "", "1\x011")
	})
}

func TestHost_Load_contexts(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	m, err := h.Load(ctx, host.Spec{Path: wat("echo")})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	call(t, m, "echo", "after the context of Load", "after the context of Load")
	if _, err := h.Load(ctx, host.Spec{Path: wat("echo")}); !errors.Is(err, context.Canceled) {
		t.Errorf("load with a cancelled context: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = h.Load(ctx, host.Spec{Path: wat("spin_start")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a start function beyond the caller's deadline: %v", err)
	}
}

func TestHost_Close(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Config{CacheDir: sharedCache})
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Load(t.Context(), host.Spec{Path: wat("echo")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Call(t.Context(), "echo", nil); !errors.Is(err, host.ErrClosed) {
		t.Errorf("call after close: %v", err)
	}
	if _, err := h.Load(t.Context(), host.Spec{Path: wat("echo")}); !errors.Is(err, host.ErrClosed) {
		t.Errorf("load after close: %v", err)
	}
	if s := m.Stats(); s.Instances != 0 {
		t.Errorf("%d instances are left", s.Instances)
	}
}

// TestHost_Load_closedMeanwhile closes the host while a module compiles.
func TestHost_Load_closedMeanwhile(t *testing.T) {
	t.Parallel()
	var h *host.Host
	var closed atomic.Bool
	h, err := host.New(host.Config{CacheDir: sharedCache, OnCompile: func(c host.CompileInfo) {
		if !c.Done && closed.CompareAndSwap(false, true) {
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := h.Load(t.Context(), host.Spec{Path: wat("echo")}); m != nil || !errors.Is(err, host.ErrClosed) {
		t.Errorf("%v, %v", m, err)
	}
}
