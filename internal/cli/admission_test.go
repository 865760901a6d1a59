package cli_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// TestAdmissionPolicyDecides: on a machine that has less memory than the config wants free, the default rules and the
// bundled quota refuse, and the quota with ignore_memory starts compactions.
func TestAdmissionPolicyDecides(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		testskip.Skip(t, "the memory that is free is known on Linux alone")
	}
	session := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	for name, tc := range map[string]struct {
		admission string
		starts    bool
	}{
		"default rules": {"", false},
		"quota":         {"policy: quota, ", false},
		"ignore_memory": {"policy: quota, config: {ignore_memory: true}, ", true},
		"threshold":     {"policy: threshold, config: {ignore_memory: true, high_per_mille: 50, low_per_mille: 50, force_per_mille: 100}, ", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, r, stderr := run(t, config(t, fmt.Sprintf(`
compaction:
  window_tokens: 64000
  threshold_tokens: 8000
  keep_recent_tokens: 3000
  summary_tokens: 1500
  summarizer: {policy: ledger}
  admission: {%squota: {cooldown: 0s}, signals: {headroom_mib: 900000000}}
`, tc.admission)), session)
			if code != exit.OK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			pressed := 0
			for _, a := range r.Admissions {
				if a.Decision.Reason == abi.ReasonMemoryPressure {
					pressed++
				}
			}
			if starts := r.kinds()["swapped"] > 0; starts != tc.starts || tc.starts == (pressed > 0) {
				t.Errorf("compactions %v, %d refused for want of memory: %+v", r.kinds(), pressed, r.Admissions)
			}
		})
	}
}
