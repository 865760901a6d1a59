package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// TestVersionFlag: --version prints what the command version prints.
func TestVersionFlag(t *testing.T) {
	t.Parallel()
	code, flag, log := mortise(t.Context(), "", "--version")
	if want := must(t, "version"); code != exit.OK || flag != want || flag == "" || log != "" {
		t.Errorf("exit code %d, %q, %q, want %q", code, flag, log, want)
	}
}

// TestExplainNone: a store without records is said to have none.
func TestExplainNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	must(t, "run", "--store", path, "--no-record", "--quiet", demoSession)
	if out := must(t, "explain", "--store", path); out != "no runs in "+path+": none has a record yet\n" {
		t.Errorf("it says %q", out)
	}
}

// TestDoctorFolder: doctor refuses a store whose folder does not exist, as serve does, and both name the folder.
func TestDoctorFolder(t *testing.T) {
	t.Parallel()
	p := newProvider(t, pays)
	cfg := p.config(t, "")
	store := filepath.Join(t.TempDir(), "none", "x.db")
	code, out, _ := mortise(t.Context(), "", "doctor", "-c", cfg, "--store", store, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if code != exit.Run || !strings.Contains(out, "mortise serve does not make it") || strings.Contains(out, "can be made") || strings.Count(out, filepath.Dir(store)) != 2 {
		t.Errorf("doctor: exit code %d: %s", code, out)
	}
	code, _, log := mortise(t.Context(), "", "serve", "-c", cfg, "--store", store, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if code != exit.Config || !strings.Contains(log, "make the folder "+filepath.Dir(store)) {
		t.Errorf("serve: exit code %d: %s", code, log)
	}
}

// TestMemoryStore: --store memory keeps nothing, and makes no file of that name.
func TestMemoryStore(t *testing.T) {
	p := newProvider(t, pays)
	cfg := p.config(t, "")
	session, err := filepath.Abs(demoSession)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	code, _, log := mortise(t.Context(), "", "run", "-c", cfg, "--store", "memory", "--approve", "always", "Pay Ada.")
	if code != exit.OK || !strings.Contains(log, "store memory: the thread is not kept") {
		t.Errorf("exit code %d: %s", code, log)
	}
	must(t, "run", "-c", cfg, "--store", "memory", "--no-record", "--quiet", session)
	if code, _, log := mortise(t.Context(), "", "run", "-c", cfg, "--store", "memory", "--thread", "t", "hello"); code != exit.Usage || !strings.Contains(log, "no store that has threads") {
		t.Errorf("exit code %d: %s", code, log)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("the folder has %v (%v)", left, err)
	}
}

// TestReplayBlocked: a replay names the runs that a plugin blocked, and with --strict fails for them.
func TestReplayBlocked(t *testing.T) {
	t.Parallel()
	cfg := config(t, "plugins: [{name: guard, module: $ROOT/testdata/guests/guard.wasm}]\n")
	session := write(t, "s.jsonl", []byte(twoTurns))
	code, out, log := mortise(t.Context(), "", "run", "-c", cfg, "--no-record", session)
	if code != exit.OK || !strings.HasPrefix(out, "1 problem, exit code 0") || !strings.Contains(out, "1 run was blocked by a plugin and ended there, the last one: ") {
		t.Errorf("exit code %d: %s%s", code, out, log)
	}
	code, _, log = mortise(t.Context(), "", "run", "--strict", "-c", cfg, "--no-record", session)
	if code != exit.Run || !strings.Contains(log, "--strict: 1 run was blocked, the last one: ") {
		t.Errorf("--strict: exit code %d: %s", code, log)
	}
}
