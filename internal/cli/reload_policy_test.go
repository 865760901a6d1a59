//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// compiled is the cache in which packages keep the modules that their tests compile.
func compiled(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "mortise-test")
}

// faulty builds the guest whose policies all fail in that way, none for the empty one, and compiles it.
func faulty(t *testing.T, mode string) (wasm []byte, sum string) {
	t.Helper()
	if testing.Short() {
		testskip.Skip(t, "builds a guest; run without -short")
	}
	file := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= -X main.mode="+mode, "-o", file, ".")
	cmd.Dir = filepath.Join(root(t), "summarizers", "testdata", "faulty")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(host.Config{CacheDir: compiled(t)})
	if err == nil {
		_, err = h.Load(t.Context(), host.Spec{Name: "faulty", Wasm: wasm})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	of := sha256.Sum256(wasm)
	return wasm, hex.EncodeToString(of[:])
}

// replace puts a file in the place of another at once, so that no reader sees a part of it.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Error(err)
	}
}

// TestReloadOfAFaultyPolicy swaps a summarizer by the signal for one that fails. One that fails on the sample, or on a
// request that the one in use has answered, does not go live; one that fails once it is live is rolled back after three
// failures, and the one before it writes again.
func TestReloadOfAFaultyPolicy(t *testing.T) {
	t.Parallel()
	good, from := faulty(t, "")
	for mode, until := range map[string]string{
		"panic": "fails on the built-in sample", "later-panic": "trial: it fails on recorded request 1 of ", "switched-panic": "summarizer was rolled back",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			bad, to := faulty(t, mode)
			module, folder := write(t, "m.wasm", good), t.TempDir()
			cfg := config(t, "cache_dir: "+compiled(t)+strings.ReplaceAll(compacting, "{module: $ROOT/testdata/guests/summarizers.wasm}",
				"{module: "+module+", policy: ledger, limits: {timeout: 30s}, grants: {files: [{host: "+folder+", guest: /switch}]}}"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var swapped, over atomic.Bool
			var out bytes.Buffer
			hangups := make(chan os.Signal, 1)
			stderr := &trigger{on: "swap", do: func() {}}
			stderr.do = func() {
				lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
				last := lines[len(lines)-1]
				switch {
				case strings.Contains(last, "summarizer was swapped"):
					if err := os.WriteFile(filepath.Join(folder, "on"), nil, 0o600); err != nil {
						t.Error(err)
					}
				case strings.Contains(last, "swapped in") && !swapped.Swap(true):
					replace(t, module, bad)
					hangups <- syscall.SIGHUP
				case strings.Contains(last, until):
					over.Store(true)
				case over.Load() && strings.Contains(last, "swapped in"):
					cancel()
				}
			}
			code := cli.Main(ctx, []string{"run", "-o", "json", "-c", cfg, "--pace", "500ms", review(t)},
				cli.Streams{In: strings.NewReader(""), Out: &out, Err: stderr, Hangups: hangups}, links.All())
			var r struct {
				Reloads []struct {
					Module, From, To, Error string
					RolledBackTo            string `json:"rolled_back_to"`
				}
				Guests []struct {
					Name             string
					Swaps, Rollbacks int
				}
				ReloadRequests int `json:"reload_requests"`
			}
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != exit.Interrupted || r.ReloadRequests == 0 {
				t.Fatalf("exit code %d, %v, %d requests: %s", code, err, r.ReloadRequests, stderr)
			}
			guest := r.Guests[len(r.Guests)-1]
			if mode != "switched-panic" {
				if l := r.Reloads[0]; l.From != from || l.To != "" || !strings.Contains(l.Error, until) || guest.Swaps != 0 {
					t.Errorf("%+v, %+v", l, guest)
				}
				return
			}
			if len(r.Reloads) < 2 || r.Reloads[0].To != to || r.Reloads[0].From != from {
				t.Fatalf("reloads %+v: %s", r.Reloads, stderr)
			}
			l := r.Reloads[1]
			if l.From != to || l.RolledBackTo != from || !strings.Contains(l.Error, "rolled back after 3 failures in 3 calls: ") ||
				!strings.Contains(l.Error, "guest panicked: on purpose") || guest.Rollbacks != 1 {
				t.Errorf("%+v, %+v", l, guest)
			}
			if text := stderr.String(); strings.Contains(text, "compaction breaker") || !strings.Contains(text, to[:12]+"… -> "+from[:12]) {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestVerdictOfAFallback: a summarizer that fails behind a fallback shows at the top of the report, and its rows
// name the policy that wrote.
func TestVerdictOfAFallback(t *testing.T) {
	t.Parallel()
	bad, _ := faulty(t, "panic")
	cfg := config(t, strings.ReplaceAll(compacting, "{module: $ROOT/testdata/guests/summarizers.wasm}",
		"{module: "+write(t, "m.wasm", bad)+", policy: ledger}\n  fallback: {policy: ledger}"))
	args := []string{"run", "-q", "-c", cfg, "--pace", "1ms", "--no-record", review(t)}
	_, stdout, stderr := mortise(t.Context(), "", append(args, "--strict", "-o", "json")...)
	var v verdict
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || v.Verdict.Faults != 1 || v.Verdict.Compactions == 0 || v.Verdict.ExitCode != int(exit.Run) {
		t.Fatalf("%v, %+v: %s", err, v, stderr)
	}
	says := "policy summarizers/ledger wrote as the fallback "
	if p := v.Verdict.Problems[0]; !strings.HasPrefix(p, says) || !strings.Contains(p, "guest panicked: on purpose") {
		t.Errorf("%q", p)
	}
	_, stdout, _ = mortise(t.Context(), "", args...)
	row := regexp.MustCompile(`(?m)^ {2}[0-9a-f-]{36} .*swapped +summarizers/ledger .*guest panicked: on purpose$`)
	if !row.MatchString(stdout) {
		t.Errorf("%s", stdout)
	}
	id := strings.Fields(row.FindString(stdout))[0]
	if strings.Count(stdout, id) != 2 {
		t.Errorf("%s is not in both tables: %s", id, stdout)
	}
}
