package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// TestRunNotesGuests: the report has the reasons for lost instances, and the place of lines that a guest prints.
func TestRunNotesGuests(t *testing.T) {
	t.Parallel()
	session := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	const plugin = "plugins: [{module: $ROOT/internal/cli/testdata/prints.wasm%s}]\n"
	silent := config(t, strings.Replace(plugin, "%s", "", 1))
	granted := config(t, strings.Replace(plugin, "%s", ", grants: {log: true}", 1))
	code, stdout, stderr := mortise(t.Context(), "", "run", "-q", "-c", silent, "--pace", "0", session)
	for _, want := range []string{
		"note: prints lost ", " grown_memory\n", "note: prints added more memory than is given back in ", "raise limits: {memory_mib: ...}",
		"note: prints printed ", " lines, which are not shown: grants: {log: true} and --log-level info show them",
	} {
		if code != exit.OK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s\n%s", code, want, stdout, stderr)
		}
	}
	const line = `msg="guest output" module=prints export=on_phase stream=stdout text=hello!`
	for _, c := range []struct {
		config string
		args   []string
		shown  bool
	}{
		{granted, []string{"-q", "--log-level", "info"}, true},
		{granted, []string{"--log-level", "info"}, true},
		{granted, []string{"-q"}, false},
		{granted, []string{"-q", "--log-level", "warn"}, false},
		{silent, []string{"-q", "--log-level", "debug"}, false},
	} {
		code, stdout, stderr := mortise(t.Context(), "", append([]string{"run", "-c", c.config, "--pace", "0", session}, c.args...)...)
		if code != exit.OK || strings.Contains(stderr, line) != c.shown || strings.Contains(stdout, "which are not shown") == (c.config == granted) {
			t.Errorf("%v: exit code %d\n%s\n%s", c.args, code, stdout, stderr)
		}
	}
	code, _, stderr = mortise(t.Context(), "", "run", "-q", "--log-level", "loud", "-c", silent, session)
	if code != exit.Usage {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
