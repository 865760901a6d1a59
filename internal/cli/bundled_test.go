package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// onePolicy is a config without a path to the policies.
const onePolicy = `
plugins: []
compaction:
  window_tokens: 64000
  threshold_tokens: 8000
  keep_recent_tokens: 3000
  summary_tokens: 1500
  min_survival: -1
  summarizer: %s
  fallback: %s
  admission: {policy: %s, quota: {cooldown: 0s}}
`

// TestBundledPolicies runs a session under policies that are named and have no path.
func TestBundledPolicies(t *testing.T) {
	t.Parallel()
	session := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	for name, tc := range map[string]struct{ summarizer, fallback, admission, by, reason string }{
		"default":          {"{}", "{}", "cost", "summarizers/ledger", ""},
		"ledger":           {"{policy: ledger}", "{}", "cost, config: {remaining_steps: 200}", "summarizers/ledger", ""},
		"threshold":        {"{policy: ledger, config: {bytes_per_token: 3}}", "{policy: ledger}", "threshold, config: {high_per_mille: 100, low_per_mille: 100}", "summarizers/ledger", ""},
		"own and fallback": {"{module: $ROOT/internal/cli/testdata/trap.wasm}", "{policy: ledger}", "quota", "summarizers/ledger", "fallback after traps: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, r, stderr := run(t, config(t, fmt.Sprintf(onePolicy, tc.summarizer, tc.fallback, tc.admission)), session)
			if code != exit.OK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			if r.kinds()["swapped"] == 0 {
				t.Fatalf("compactions %v, admissions %+v", r.kinds(), r.Admissions)
			}
			for _, c := range r.Compactions {
				if c.Kind == "swapped" && (c.Policy != tc.by || !strings.HasPrefix(c.Reason, tc.reason) || tc.reason == "" && c.Reason != "") {
					t.Errorf("%s by %s: %s", c.Kind, c.Policy, c.Reason)
				}
			}
		})
	}
}

// TestBundledRefusals: what cannot work is reported before anything runs.
func TestBundledRefusals(t *testing.T) {
	t.Parallel()
	session := write(t, "s.json", []byte(oneMessage))
	for name, tc := range map[string]struct {
		text, says string
		code       exit.Code
	}{
		"no model":        {"compaction: {summarizer: {policy: anchored}}\n", "compaction.summarizer: policy: anchored asks a model; grant one of models with grants: {model: {summarizer: NAME}}, or write policy: ledger", exit.Config},
		"sum":             {"compaction: {summarizer: {policy: ledger, sha256: '" + strings.Repeat("ab", 32) + "'}}\n", "compaction.summarizer: sha256: is for a module of your own", exit.Config},
		"config alone":    {"compaction: {summarizer: {config: {hint: x}}}\n", "compaction.summarizer: config: stands without a policy or a module", exit.Config},
		"unknown":         {"compaction: {summarizer: {policy: magic}}\n", `module "summarizer": knows no policy "magic"; it knows ledger, gc, anchored`, exit.Config},
		"unknown admits":  {"compaction: {summarizer: {policy: ledger}, admission: {policy: magic}}\n", `module "admission": knows no policy "magic"; it knows cost, quota, threshold`, exit.Config},
		"config is wrong": {"compaction: {summarizer: {policy: ledger, config: {zzz: 1}}}\n", `additional properties 'zzz'`, exit.Config},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", config(t, tc.text), session)
			if code != tc.code || !strings.Contains(stderr, tc.says) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}
