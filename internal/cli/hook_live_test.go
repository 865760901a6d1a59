package cli_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agents"
)

// TestLive_doctor: the program installs its hooks, and doctor --live proves block, rewrite and redaction with the installed agent.
// Codex's hooks are reported as long as Codex does not trust them.
func TestLive_doctor(t *testing.T) {
	bin, built := t.TempDir(), false
	for _, agent := range []string{agents.Claude, agents.Codex, agents.Qwen} {
		t.Run(agent, func(t *testing.T) {
			path := agents.Path(t, agent)
			if !built {
				build(t, bin)
				built = true
			}
			p := newHookPlace(t)
			t.Setenv("PATH", filepath.Dir(path)+":/usr/local/bin:/usr/bin:/bin")
			mortise := func(want int, args ...string) string {
				out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "mortise"), append(args, "--config", p.config, "--profile", p.profile)...).CombinedOutput()
				code, exit := 0, (*exec.ExitError)(nil)
				if errors.As(err, &exit) {
					code = exit.ExitCode()
				}
				if code != want {
					t.Fatalf("%v: exit %d, want %d: %s", args, code, want, out)
				}
				return string(out)
			}
			install := []string{"hook", "install", agent, "--partial"}
			mortise(1, "hook", "doctor", agent)
			out := mortise(0, install...)
			if agent == agents.Codex {
				if list := mortise(0, "hook", "list"); !strings.Contains(out, "NOT TRUSTED") || !strings.Contains(list, "NOT TRUSTED") {
					t.Errorf("install and list of what Codex does not trust:\n%s\n%s", out, list)
				}
				if found := mortise(1, "hook", "doctor", agent); !strings.Contains(found, "NOT TRUSTED") {
					t.Errorf("doctor: %s", found)
				}
				if out := mortise(0, append(install, "--trust")...); !strings.Contains(out, "to be trusted by Codex:") || !strings.Contains(out, "trusted: Codex runs all") {
					t.Errorf("--trust: %s", out)
				}
			}
			var found struct {
				Checks []struct{ Check, State, Detail string }
			}
			text := mortise(0, "hook", "doctor", agent, "--live", "--output", "json")
			if err := json.Unmarshal([]byte(text), &found); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"live: block": "ok", "live: rewrite": "ok", "live: redaction": "ok"}
			if agent == agents.Qwen {
				want["live: rewrite"] = "warn" // it has no form for that
			}
			for _, c := range found.Checks {
				if want[c.Check] == c.State {
					delete(want, c.Check)
				}
			}
			if len(want) > 0 {
				t.Errorf("%v: %s", want, text)
			}
		})
	}
}

// build builds the programs into a folder.
func build(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/mortise", "../../cmd/mortise-hook").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
