package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// TestInit: the config that mortise init writes is valid, also with its comments taken in, and a file that is there is left alone.
func TestInit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new", "mortise.yaml")
	code, out, errs := mortise(t.Context(), "", "init", "--config", file)
	if code != exit.OK || !strings.Contains(out, "wrote "+file) || !strings.Contains(out, "mortise hook install claude") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code, out := validate(t, string(text)); code != exit.OK || !strings.Contains(out, "2 plugins") {
		t.Errorf("exit code %d: %s", code, out)
	}
	// The models of the comments are valid, too, and the whole is what serve and run take.
	whole := strings.NewReplacer("# store:", "store:", "# models:", "models:", "#   main:", "  main:", "# agents:", "agents:", "#   assistant:", "  assistant:").Replace(string(text))
	cfg := strings.Replace(whole, "name: claude-sonnet-4-5}", "name: claude-sonnet-4-5, key: {env: HOME}}", 1)
	if code, out := validate(t, cfg); code != exit.OK || !strings.Contains(out, "1 agent, 1 model, 2 plugins") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, _, errs := mortise(t.Context(), "", "init", "--config", file); code != exit.Config || !strings.Contains(errs, file+" is there already") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, text) {
		t.Errorf("%v: it was changed to %q", err, again)
	}
	if code, _, errs := mortise(t.Context(), "", "init", "--user", "--config", file); code != exit.Usage || !strings.Contains(errs, "--user: ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestBundledPlugin_unknown names those that there are.
func TestBundledPlugin_unknown(t *testing.T) {
	t.Parallel()
	code, out := validate(t, "version: 1\nplugins:\n  - {name: x, module: 'bundled:gourd'}\n")
	if code == exit.OK || !strings.Contains(out, `plugins[0] (x): there is no bundled plugin "gourd"; it is one of guard, redact`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}
