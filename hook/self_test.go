package hook_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

// TestSelf: no file tool changes what is installed, or a ticket, however the path is spelled; what is only named like it passes.
func TestSelf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	profile, link := filepath.Join(dir, "profile"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(profile, 0o700), os.Symlink(profile, link)); err != nil {
		t.Fatal(err)
	}
	b := engine(t, options{plugins: []phases.Plugin{blocks("guard", "forbidden")}, edit: func(c *hook.Config) { c.Profile = profile }})
	for path, denied := range map[string]bool{
		profile: true, profile + "/installed.json": true, profile + "/tickets/a.json": true, "profile/policy": true, link + "/installed/new/x": true,
		"link/../profile/policy": true, profile + ".txt": false, "/w/installed.json": false, dir + "/x": false, "": false,
	} {
		for tool, input := range map[string]map[string]any{
			"Write":       {"file_path": path, "content": "x"},
			"Edit":        {"file_path": path, "old_string": "a", "new_string": "b"},
			"apply_patch": {"command": "*** Begin Patch\n*** Add File: /w/x\n+y\n*** Update File: " + path + "\n*** End Patch"},
		} {
			dialect := "claude"
			if tool == "apply_patch" {
				dialect = "codex"
			}
			out, _ := b.send(dialect, "PreToolUse", map[string]any{"session_id": "s", "cwd": dir, "tool_name": tool, "tool_use_id": path, "tool_input": input})
			if strings.Contains(out, "a person has to decide") != denied {
				t.Errorf("%s %q: %s", tool, path, out)
			}
		}
	}
	if out, _ := b.send("claude", "PreToolUse", map[string]any{"session_id": "s", "cwd": dir, "tool_name": "Read", "tool_use_id": "r", "tool_input": map[string]any{"file_path": profile + "/policy"}}); strings.Contains(out, "deny") {
		t.Errorf("reading: %s", out)
	}
}
