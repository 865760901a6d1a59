package host_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// rejected are binaries of the WebAssembly spec suites that an engine must refuse,
// by their path in the suites. Copies are left out.
func rejected(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	root := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
	lists, globErr := filepath.Glob(filepath.Join(root, "*", "testdata", "*.json"))
	if err != nil || globErr != nil || len(lists) == 0 {
		testskip.Missing(t, "the spec suites of wazero's module are not in the module cache (%v, %v)", err, globErr)
	}
	found, seen := map[string][]byte{}, map[[sha256.Size]byte]bool{}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		var suite struct {
			Commands []struct {
				Type, Filename string
				ModuleType     string `json:"module_type"`
			}
		}
		if err := json.Unmarshal(data, &suite); err != nil {
			t.Fatal(err)
		}
		for _, c := range suite.Commands {
			if c.Type != "assert_invalid" && c.Type != "assert_malformed" || c.ModuleType != "binary" {
				continue
			}
			path := filepath.Join(filepath.Dir(list), c.Filename)
			bin, err := os.ReadFile(path)
			if err != nil {
				continue // not every suite ships all of its binaries
			}
			if sum := sha256.Sum256(bin); !seen[sum] {
				seen[sum] = true
				name, _ := filepath.Rel(root, path)
				found[filepath.ToSlash(strings.Replace(name, "/testdata/", "/", 1))] = bin
			}
		}
	}
	return found
}

// TestSuite_rejected loads every malformed and invalid binary on both engines, with -short a fifth of them on the Extism engine. None
// makes the host panic or hang, and each error names the module.
func TestSuite_rejected(t *testing.T) {
	t.Parallel()
	binaries := rejected(t)
	if len(binaries) < 1500 {
		t.Fatalf("only %d binaries were found", len(binaries))
	}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
		var mu sync.Mutex
		var taken []string
		var wg sync.WaitGroup
		work := make(chan string)
		for range 2 {
			wg.Go(func() {
				for name := range work {
					if loads(t, h, name, binaries[name]) {
						mu.Lock()
						taken = append(taken, name)
						mu.Unlock()
					}
				}
			})
		}
		names := slices.Sorted(maps.Keys(binaries))
		if testing.Short() && e == hosttest.Extism { // for each, go-sdk makes its kernel again
			sample := misses(e)
			for n := 0; n < len(names); n += 5 {
				sample = append(sample, names[n])
			}
			slices.Sort(sample)
			names = slices.Compact(sample)
		}
		for _, name := range names {
			work <- name
		}
		close(work)
		wg.Wait()
		slices.Sort(taken)
		t.Logf("%d of %d binaries were taken", len(taken), len(names))
		if want := misses(e); !slices.Equal(taken, want) {
			t.Errorf("taken, although a specification refuses them:\n%s\nknown are:\n%s", strings.Join(taken, "\n"), strings.Join(want, "\n"))
		}
	})
}

// loads loads a binary and looks at the error.
func loads(t *testing.T, h *host.Host, name string, bin []byte) bool {
	t.Helper()
	m, err := h.Load(t.Context(), host.Spec{Name: name, Wasm: bin})
	if err == nil {
		if err := m.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return true
	}
	var bad *host.LoadError
	if !errors.As(err, &bad) || bad.Module != name || !strings.Contains(err.Error(), name) || errors.Is(err, host.ErrEngine) || bad.Hint == "" {
		t.Errorf("%s: %v", name, err)
	}
	return false
}

// misses are the binaries that an engine takes although a suite wants them refused.
func misses(e string) []string {
	out := []string{
		"v1/func.20.wasm",              // two results: valid with multi-value
		"v1/imports.49.wasm",           // two tables: valid with reference types
		"v1/type.3.wasm",               // two results again
		"v1/unreached-invalid.87.wasm", // labels of unlike types in dead code: valid in version 2
	}
	if e == hosttest.Native {
		out = append(out,
			"v2/elem.10.wasm", // an offset that names the module's own global: valid with extended constants
			"v2/elem.11.wasm")
	}
	return out
}
