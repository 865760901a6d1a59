package cli_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// TestConfigSecret: no command shows a line of the config, which may have a secret, with what is wrong in it.
func TestConfigSecret(t *testing.T) {
	t.Parallel()
	cfg := config(t, "mcp: [{name: m, env: {TOKEN: ghp_hunter22}, tols: [a]}]\n")
	for _, line := range []string{
		"serve", "acp", "validate", "validate --json", "doctor", "doctor --json", "run hello", "run " + demoSession, "explain", "explain --output json", "compact show t", "compact undo t",
		"compact eval " + demoSession, "hook list claude", "hook doctor claude", "hook run claude", "proxy", "status",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			code, out, log := mortise(t.Context(), "{}", append(strings.Fields(line), "--config", cfg)...)
			if code == exit.OK || strings.Contains(out+log, "hunter22") {
				t.Errorf("exit code %d: %s%s", code, out, log)
			}
			if text := out + log; strings.Contains(text, "tols") && !strings.Contains(text, "mortise.yaml:2:") && !strings.Contains(text, `"line": 2`) {
				t.Errorf("the place is missing: %s%s", out, log)
			}
		})
	}
}

// demoSession is a recording.
const demoSession = "../../examples/sessions/review.jsonl"
