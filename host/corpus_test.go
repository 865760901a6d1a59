package host_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// inputsOf are what each export of a module is called with. Those of one module come after those of all.
func inputsOf(module string) []string {
	all := []string{"", "a", "hello", "hello world", "an input of twenty-three", `{"key": "value", "n": 3}`, strings.Repeat("aeiou x", 1000), "caf\u00e9 \xff\x00 end"}
	more := map[string][]string{
		"count_vowels": {"aaaaaa", "bbbbbbb"}, "replace": {"the quick brown fox"}, "hello_haskell": {"John"},
		"host_memory": {"HELLO"}, "host_multiple": {"12"}, "exit": {"1"}, "read_write": {"/none"},
	}
	return append(all, more[module]...)
}

// corpusGrants let a module have what both engines answer alike. The functions that it imports from the
// embedder are there, and return their first parameter.
func corpusGrants(in *host.Inspection) host.Grants {
	g := host.Grants{Config: map[string]string{"thing": "hello", "greeting": "Howdy", "code": "2", "path": "/none", "duration": "1", "empty": ""}, Capabilities: []host.Capability{log.Grant{}}}
	types := map[string]host.ValueType{"i32": host.I32, "i64": host.I64, "f32": host.F32, "f64": host.F64}
	list := func(text string) []host.ValueType {
		var out []host.ValueType
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("(), ", r) }) {
			out = append(out, types[name])
		}
		return out
	}
	for _, im := range in.Imports {
		params, results, _ := strings.Cut(im.Type, "->")
		if im.Kind == "func" && im.Module == "extism:host/user" {
			g.Functions = append(g.Functions, host.Function{
				Module: im.Module, Name: im.Name, Params: list(params), Results: list(results),
				Call: func(context.Context, *host.Caller, []uint64) error { return nil },
			})
		}
	}
	return g
}

// outcome words what a call, or a load, came to. Of a trap the kind counts: engines name places differently.
func outcome(out []byte, err error) string {
	var refused *host.GuestError
	var trap *host.TrapError
	var bad *host.LoadError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("refused with code %d: %s", refused.Code, refused.Message)
	case errors.As(err, &trap) && trap.Kind == host.TrapExit:
		return fmt.Sprintf("exit %d", trap.ExitCode)
	case errors.As(err, &bad) && bad.Err != nil && !errors.As(bad.Err, &trap):
		return "not loaded: " + bad.Problem
	case errors.As(err, &trap):
		return "trap " + string(trap.Kind)
	case err != nil:
		return "error " + err.Error()
	case len(out) > 200:
		return fmt.Sprintf("%d bytes, SHA-256 %x", len(out), sha256.Sum256(out))
	}
	return fmt.Sprintf("%q", out)
}

// observe runs a module on an engine, and returns what each of its calls came to.
func observe(t *testing.T, e, name string, bin []byte) map[string]string {
	t.Helper()
	in, err := host.Inspect(name, bin)
	if err != nil {
		return map[string]string{"load": outcome(nil, err)}
	}
	h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
	m, err := h.Load(t.Context(), host.Spec{Name: name, Wasm: bin, Grants: corpusGrants(in), Limits: host.Limits{Instances: 1, Timeout: 20 * time.Second, InitTimeout: time.Minute}})
	if err != nil {
		return map[string]string{"load": outcome(nil, err)}
	}
	defer m.Close(context.WithoutCancel(t.Context()))
	seen := map[string]string{"load": "loaded", "exports": strings.Join(m.Info().Exports, " ")}
	for _, export := range m.Info().Exports {
		if name == "alloc" {
			continue // a call takes go-sdk's allocator a minute: TestConformance makes one
		}
		if export == "_initialize" || export == "hs_init" || strings.HasPrefix(export, "__wasm_call") {
			continue // these have run
		}
		for n, input := range inputsOf(name) {
			seen[fmt.Sprintf("%s %d", export, n)] = outcome(m.Call(t.Context(), export, []byte(input)))
		}
	}
	return seen
}

// modulesIn are the binaries below a folder that a host of plugins may be given.
func modulesIn(t *testing.T, dir string, skip ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		rel = filepath.ToSlash(rel)
		if err != nil || d.IsDir() || filepath.Ext(path) != ".wasm" || slices.ContainsFunc(skip, func(s string) bool { return strings.Contains(rel, s) }) {
			return err
		}
		out[rel] = path
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// moduleDir is where the module cache keeps a dependency.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		testskip.Missing(t, "%s is not in the module cache (%v)", module, err)
	}
	return dir
}

// compareModules runs modules on both engines. Any difference that is not known fails the test, and so
// does a known one that is gone. Known ones have the reason, by the path of a module and its export.
func compareModules(t *testing.T, modules, known map[string]string) {
	t.Helper()
	for _, rel := range slices.Sorted(maps.Keys(modules)) {
		t.Run(strings.TrimSuffix(rel, ".wasm"), func(t *testing.T) {
			t.Parallel()
			bin, err := os.ReadFile(modules[rel])
			if err != nil {
				t.Fatal(err)
			}
			compareModule(t, rel, bin, known)
		})
	}
}

func compareModule(t *testing.T, rel string, bin []byte, known map[string]string) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(rel), ".wasm")
	native, extism := observe(t, hosttest.Native, name, bin), observe(t, hosttest.Extism, name, bin)
	differ := map[string]bool{}
	for _, call := range slices.Sorted(maps.Keys(native)) {
		if native[call] == extism[call] || native["load"] != extism["load"] && call != "load" {
			continue
		}
		key := rel + ": " + strings.TrimRight(call, " 0123456789")
		differ[key] = true
		if known[key] == "" {
			t.Errorf("%s: %s:\n  native %s\n  extism %s", rel, call, native[call], extism[call])
		}
	}
	for key, why := range known {
		if strings.HasPrefix(key, rel+": ") && !differ[key] {
			t.Errorf("%s: there is no difference any more (%s): take it off the list", key, why)
		}
	}
}

// TestCorpus_goSDK: all modules that Extism publishes for the tests of go-sdk.
func TestCorpus_goSDK(t *testing.T) {
	t.Parallel()
	modules := modulesIn(t, filepath.Join(moduleDir(t, "github.com/extism/go-sdk"), "wasm"))
	if len(modules) < 27 {
		t.Fatalf("only %d modules were found", len(modules))
	}
	compareModules(t, modules, nil)
}

// TestCorpus_wazero: the modules of wazero's examples and tests, without the specification's suites.
func TestCorpus_wazero(t *testing.T) {
	t.Parallel()
	// Of the modules that never end, one is enough: TestHostile has its own.
	modules := modulesIn(t, moduleDir(t, "github.com/tetratelabs/wazero"), "spectest", "infinite_loop")
	if len(modules) < 50 {
		t.Fatalf("only %d modules were found", len(modules))
	}
	const (
		proposals = "go-sdk's runtime is set to WebAssembly 2.0, and the native engine takes exceptions, threads and tail calls too"
		lasts     = "memory and tables last from call to call in go-sdk: the second call of an instance finds what the first left behind"
	)
	known := map[string]string{
		"internal/integration_test/fuzzcases/testdata/720.wasm: access memory after table.grow": lasts,
		"imports/wasi_snapshot_preview1/example/testdata/zig-cc/cat.wasm: _start":               lasts,
		"imports/wasi_snapshot_preview1/example/testdata/cargo-wasi/cat.wasm: _start":           lasts,
		"imports/wasi_snapshot_preview1/example/testdata/cargo-wasi/cat.wasm: __main_void":      lasts,
	}
	for _, path := range []string{
		"experimental/testdata/cpp_exceptions", "experimental/testdata/fac", "experimental/testdata/memory",
		"internal/integration_test/fuzzcases/testdata/2131", "internal/integration_test/engine/testdata/eh_br_orphan",
		"internal/integration_test/engine/testdata/eh_br_stale_handler", "internal/integration_test/engine/testdata/eh_cross_callnative",
		"internal/integration_test/engine/testdata/eh_pdfium", "internal/integration_test/engine/testdata/eh_throw_ref_null",
		"internal/integration_test/engine/testdata/threads/add", "internal/integration_test/engine/testdata/threads/mutex",
		"internal/integration_test/engine/testdata/threads/sub", "internal/integration_test/engine/testdata/threads/xor",
	} {
		known[path+".wasm: load"] = proposals
	}
	compareModules(t, modules, known)
}

// TestCorpus_kits: guests on Extism's kits for Go, as the benchmarks build it, and for AssemblyScript,
// as testdata/npm/build.sh does.
func TestCorpus_kits(t *testing.T) {
	t.Parallel()
	t.Run("go-pdk", func(t *testing.T) { t.Parallel(); compareModule(t, "pdk.wasm", built(t, pdkGuest), nil) })
	t.Run("npm", func(t *testing.T) {
		t.Parallel()
		dir := cmp.Or(os.Getenv("MORTISE_NPM_MODULES"), filepath.Join("..", "bin", "npm"))
		if _, err := os.Stat(dir); err != nil {
			testskip.Skip(t, "%s is not there: host/testdata/npm/build.sh bin/npm makes it, with npm", dir)
		}
		modules := modulesIn(t, dir)
		if len(modules) < 2 {
			t.Fatalf("only %d modules were found", len(modules))
		}
		compareModules(t, modules, nil)
	})
}
