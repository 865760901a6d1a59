package host_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/fs"
	"github.com/mortise-dev/mortise/host/capability/http"
)

// emptyModule is a binary without exports.
func emptyModule() []byte { return wasmOf() }

// renamed returns the first generation with an export under another name of the same length.
func renamed(t *testing.T, from, to string) []byte {
	t.Helper()
	b := generation(t, '2', '.')
	out := bytes.ReplaceAll(b, []byte(from), []byte(to))
	if bytes.Equal(b, out) || len(b) != len(out) {
		t.Fatalf("there is no %s in the guest", from)
	}
	return out
}

// TestModule_Swap_exports: a binary without an export that is in use is refused, and nothing has changed.
func TestModule_Swap_exports(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{})
		if _, err := m.Swap(t.Context(), host.Spec{Wasm: renamed(t, "work", "wick")}, host.SwapOptions{}); err != nil {
			t.Fatalf("an export that was never called: %v", err)
		}
		call(t, m.Module, "wick", "", "2")
		refused := func(wasm []byte, want string) {
			t.Helper()
			_, err := m.Swap(t.Context(), host.Spec{Wasm: wasm}, host.SwapOptions{})
			if !errors.Is(err, host.ErrExport) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		const missing = `module "policy" does not export "wick", which is called on the generation in use; add the function`
		refused(generation(t, '3', '.'), missing)
		refused(emptyModule(), missing)
		refused(wasmOf(sec(sMemory, enc(0, 1)), sec(sExport, export("wick", 2, 0))), `exports "wick" as a memory, and it is called`)
		if _, err := m.Swap(t.Context(), host.Spec{Wasm: renamed(t, "work", "wick")}, host.SwapOptions{}); err != nil {
			t.Fatal(err)
		}
		refused(generation(t, '3', '.'), missing) // in use since the generation before
		if m.Current().Number() != 3 || m.Stats().Swaps != 2 {
			t.Errorf("generation %d, %+v", m.Current().Number(), m.Stats())
		}
	})
}

// TestModule_Swap_required: so is one without an export that the spec in use requires.
func TestModule_Swap_required(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	m, err := h.Load(t.Context(), host.Spec{Name: "policy", Wasm: generation(t, '1', '.'), Require: []string{"work"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []host.Spec{
		{Wasm: renamed(t, "work", "wick")},
		{Wasm: renamed(t, "work", "wick"), Limits: host.Limits{Instances: 1}},
		{Wasm: renamed(t, "work", "wick"), Require: []string{"ok"}},
	} {
		if _, err := m.Swap(t.Context(), spec, host.SwapOptions{}); !errors.Is(err, host.ErrExport) || !strings.Contains(err.Error(), `does not export "work"`) {
			t.Errorf("%+v: %v", spec.Limits, err)
		}
	}
}

// TestModule_Swap_missing: calls of an export that is missing are failures, in the statistics and
// for the watch.
func TestModule_Swap_missing(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{})
		opts := host.SwapOptions{Watch: host.Watch{Calls: 100, MinCalls: 2, MaxFailures: 0.1}}
		if _, err := m.Swap(t.Context(), host.Spec{Wasm: renamed(t, "work", "wick")}, opts); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := m.Call(t.Context(), "work", nil); !errors.Is(err, host.ErrNoExport) {
				t.Errorf("%v, want ErrNoExport", err)
			}
		}
		if s := m.Stats(); s.Rollbacks != 1 || s.Calls != 2 || s.Failures != 2 || m.Current().Number() != 1 {
			t.Errorf("generation %d, %+v", m.Current().Number(), s)
		}
		call(t, m.Module, "work", "", "1")
	})
}

// TestModule_Spec: a swap of the binary alone keeps the conditions, and one that names a condition
// takes all of them from its spec.
func TestModule_Spec(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	dir := t.TempDir()
	mounts := []fs.Mount{{Host: dir, Guest: "/data"}}
	m, err := h.Load(t.Context(), host.Spec{
		Path: wat("echo"), SHA256: shaOf(watBytes(t, "echo")), Require: []string{"echo"}, Limits: host.Limits{InputBytes: 100, Timeout: time.Minute},
		Grants: host.Grants{Config: map[string]string{"k": "v"}, Capabilities: []host.Capability{&fs.Grant{Mounts: mounts}, &http.Grant{Hosts: []string{"a.example.com"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 200)
	bounded := func(step string, want bool) {
		t.Helper()
		if _, err := m.Call(t.Context(), "echo", large); errors.Is(err, host.ErrInputTooLarge) != want {
			t.Errorf("%s: %v", step, err)
		}
	}
	kept := func(step string) {
		t.Helper()
		bounded(step, true)
		s := m.Spec()
		files, _ := s.Grants.Capability("fs").(*fs.Grant)
		http, _ := s.Grants.Capability("http").(*http.Grant)
		if files == nil || http == nil {
			t.Fatalf("%s: %+v", step, s)
		}
		if s.Limits.InputBytes != 100 || s.Limits.Timeout != time.Minute || s.Grants.Config["k"] != "v" || len(files.Mounts) != 1 ||
			http.Hosts[0] != "a.example.com" || len(s.Require) != 1 || s.Wasm != nil || s.SHA256 != "" {
			t.Errorf("%s: %+v", step, s)
		}
		// What the caller does with it is not the module's affair.
		s.Grants.Config["k"], http.Hosts[0], files.Mounts[0].Writable, s.Require[0] = "x", "evil.example.com", true, "none"
	}
	kept("loaded")
	swap := func(step string, spec host.Spec) {
		t.Helper()
		if _, err := m.Swap(t.Context(), spec, host.SwapOptions{}); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	another := filepath.Join(dir, "echo.wasm")
	writeFile(t, another, withSection(watBytes(t, "echo"), "other", "1"))
	swap("by path", host.Spec{Path: another})
	kept("by path")
	swap("by bytes", host.Spec{Name: "echo", Wasm: watBytes(t, "echo"), SHA256: shaOf(watBytes(t, "echo"))})
	kept("by bytes")
	spec := m.Spec()
	spec.Path = another
	swap("by what Spec returns", spec)
	kept("by what Spec returns")
	if _, err := m.Swap(t.Context(), host.Spec{Path: another, SHA256: shaOf(watBytes(t, "echo"))}, host.SwapOptions{}); !errors.Is(err, host.ErrChecksum) {
		t.Errorf("another checksum: %v", err)
	}
	swap("with limits", host.Spec{Path: another, Limits: host.Limits{Instances: 1}})
	bounded("with limits", false)
	if s := m.Spec(); s.Grants.Capabilities != nil || s.Grants.Config != nil {
		t.Errorf("with limits: %+v", s.Grants)
	}
}

func shaOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
