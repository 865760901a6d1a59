package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// TestHook_uninstall: our hook goes also from a group to which its user has added another one, which stays; and hooks of another config are
// named, not taken for none.
func TestHook_uninstall(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	p.run(exit.OK, "hook", "install", "claude")
	data, err := os.ReadFile(p.settings)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Hooks map[string][]map[string]any `json:"hooks"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	group := all.Hooks["PreToolUse"][0]
	hooks, _ := group["hooks"].([]any)
	group["hooks"] = append(hooks, map[string]any{"type": "command", "command": "mine"})
	if data, err = json.MarshalIndent(all, "", "  "); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.settings, data, 0o600); err != nil {
		t.Fatal(err)
	}
	profile := p.profile
	p.profile = t.TempDir()
	if out := p.run(exit.Run, "hook", "uninstall", "claude"); !strings.Contains(out, "hooks of other configs") || !strings.Contains(out, "--profile "+profile) {
		t.Error(out)
	}
	if now, err := os.ReadFile(p.settings); err != nil || !bytes.Equal(now, data) {
		t.Errorf("%v: it changed the hooks of another config: %s", err, now)
	}
	p.profile = profile
	p.run(exit.OK, "hook", "uninstall", "claude")
	data, err = os.ReadFile(p.settings)
	if text := string(data); err != nil || strings.Contains(text, "mortise-hook") || strings.Count(text, `"mine"`) != 1 {
		t.Errorf("%v: uninstall left %s", err, text)
	}
}
