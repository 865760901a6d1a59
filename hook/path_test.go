package hook_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/hook"
)

// TestPaths: plugins see the file that a tool takes, however its path is spelled, and what they do not change stays as it was written.
func TestPaths(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][4]string{
		{"claude", "Read", "/w/../etc//shadow", "/etc/shadow"},
		{"claude", "Read", "../etc/./shadow", "/etc/shadow"},
		{"claude", "Read", "~/.ssh/id", home + "/.ssh/id"},
		{"claude", "Read", "~/../x", home + "/../x"},
		{"claude", "Read", "~", home},
		{"claude", "Read", "~other/x", "~other/x"},
		{"claude", "Read", "a~/x", "/w/a~/x"},
		{"claude", "Read", "@app/x", "/w/@app/x"},
		{"pi", "read", "@/etc/shadow", "/etc/shadow"},
		{"pi", "read", "@~/.ssh/id", home + "/.ssh/id"},
		{"pi", "read", "@@x", "/w/@x"},
		{"pi", "read", "/My\u00a0Documents/x", "/My Documents/x"},
	} {
		d, err := hook.DialectOf(c[0])
		if err != nil {
			t.Fatal(err)
		}
		native := map[string]any{"path": c[2]}
		if c[0] == "claude" {
			native = map[string]any{"file_path": c[2]}
		}
		call := d.Translate(c[1], native, "/w")
		args, _ := call.Args.(map[string]any)
		if want := filepath.Clean(c[3]); args["path"] != want {
			t.Errorf("%s: %q is shown as %q, not %q", c[0], c[2], args["path"], want)
		}
		if got := call.Native(call.Args); !reflect.DeepEqual(got, native) {
			t.Errorf("%s: %q became %v", c[0], c[2], got)
		}
	}
	const patch = "*** Begin Patch\n*** Add File: /w/../etc/x\n+y\n*** Delete File:/etc/y\n*** End Patch" // opencode needs no space
	for name, argument := range map[string]string{"codex": "command", "copilot": "input", "opencode": "patchText"} {
		d, err := hook.DialectOf(name)
		if err != nil {
			t.Fatal(err)
		}
		call := d.Translate("apply_patch", map[string]any{argument: patch}, "/w")
		if call.Kind != hook.KindPatch || !reflect.DeepEqual(call.Files, []string{"/etc/x", "/etc/y"}) {
			t.Errorf("%s: it is a %s and touches %q", name, call.Kind, call.Files)
		}
	}
}
