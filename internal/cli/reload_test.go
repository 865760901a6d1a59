package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
)

// TestReload replaces the file of a plugin in the middle of a run and sends the signal: to this command alone, since
// a signal of the process would end the runs of other tests that have a terminal.
func TestReload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ module, from, to, version, says string }{
		"swapped": {"json", `"1.0.0"`, `"1.0.1"`, "1.0.1", ""},
		"refused": {"json", `"name":"json-guard"`, `"name":"json-gourd"`, "1.0.0", `it calls itself "json-gourd", the plugin in use is "json-guard"`},
		// It traps at each step, so the new binary goes again.
		"rolled back": {"trap", `"1.0.0"`, `"1.0.1"`, "", "rolled back after 5 failures in 5 calls: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, err := os.ReadFile(filepath.Join(root(t), "plugins", "testdata", tc.module+".wasm"))
			if err != nil {
				t.Fatal(err)
			}
			module := write(t, "m.wasm", was)
			cfg := config(t, "plugins: [{name: x, module: "+module+", on_failure: ignore}]\n")
			var once sync.Once
			var out bytes.Buffer
			hangups := make(chan os.Signal, 1)
			stderr := &trigger{on: "step 50", do: func() {
				once.Do(func() {
					if err := os.WriteFile(module, bytes.ReplaceAll(was, []byte(tc.from), []byte(tc.to)), 0o600); err != nil {
						t.Error(err)
					}
					hangups <- syscall.SIGHUP
				})
			}}
			session := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
			code := cli.Main(t.Context(), []string{"run", "-o", "json", "-c", cfg, "--log-level", "error", "--pace", "30ms", session},
				cli.Streams{In: strings.NewReader(""), Out: &out, Err: stderr, Hangups: hangups}, links.All())
			var r report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != exit.OK {
				t.Fatalf("exit code %d, %v: %s", code, err, stderr)
			}
			text := ""
			for _, l := range r.Reloads {
				if l.Module != "x" || l.From == "" || (l.To == "") == (l.Error == "") {
					t.Errorf("reload %+v", l)
				}
				text += l.Error
			}
			if len(r.Reloads) == 0 || !strings.Contains(text, tc.says) || (tc.says == "" && text != "") {
				t.Errorf("reloads %+v: %s", r.Reloads, stderr)
			}
			if (tc.version != "" && r.Modules[0].Version != tc.version) || !strings.Contains(stderr.String(), "reload: ") {
				t.Errorf("module %+v: %s", r.Modules[0], stderr)
			}
		})
	}
}
