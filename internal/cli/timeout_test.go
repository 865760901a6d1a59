package cli_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/exit"
)

// TestTimeLimitOfAPlugin: limits.timeout of a plugin is its limit, whatever agent.hook_timeout is, and
// the report has the limit that was in force.
func TestTimeLimitOfAPlugin(t *testing.T) {
	t.Parallel()
	spin := "{module: " + filepath.Join(root(t), "plugins", "testdata", "spin.wasm") + ", on_failure: fail"
	for name, tc := range map[string]struct {
		config string
		limit  time.Duration
	}{
		"own":         {"agent: {hook_timeout: 100ms}\nplugins: [" + spin + ", limits: {timeout: 700ms}}]\n", 700 * time.Millisecond},
		"hook":        {"agent: {hook_timeout: 100ms}\nplugins: [" + spin + "}]\n", 100 * time.Millisecond},
		"all modules": {"limits: {timeout: 300ms}\nplugins: [" + spin + "}]\n", 300 * time.Millisecond},
		"above 5s":    {"limits: {timeout: 6s}\nplugins: [" + spin + "}]\n", 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := mortise(t.Context(), "", "run", "-q", "-o", "json", "-c", config(t, tc.config), beginning(t, review(t), 3))
			var r struct {
				Hooks []struct {
					Plugin  string
					MaxMS   float64 `json:"max_ms"`
					LimitMS int64   `json:"limit_ms"`
				}
			}
			if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exit.Run || len(r.Hooks) != 1 {
				t.Fatalf("exit code %d, %v: %s %s", code, err, stdout, stderr)
			}
			h := r.Hooks[0]
			if h.Plugin != "spin" || h.LimitMS != tc.limit.Milliseconds() || h.MaxMS < float64(h.LimitMS) {
				t.Errorf("%+v, want a limit of %s that was used", h, tc.limit)
			}
		})
	}
}
