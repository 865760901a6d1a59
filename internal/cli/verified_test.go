package cli_test

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// TestRun_verified: what a model writes as a summary is held against the log before a run reads it. A file that no call
// changed is not in what the next run is sent, the rest of the summary is.
func TestRun_verified(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(q providertest.Query) providertest.Answer {
		if q.System != "You are a clerk." { // the summarizer asks
			return said("<summary>\n## Goal\n- Answer message 0 and the ones after it.\n## Progress\n- The clerk has read /srv/app/main.go.\n## Files\n- /srv/app/main.go (modified)\n## Next\n- Message 6.\n</summary>")
		}
		return said("You said %q. I have read /srv/app/main.go. %s", last(q).Text(), strings.Repeat("It needed a change in many places. ", 170))
	})
	cfg := p.config(t, `
compaction:
  window_tokens: 20000
  threshold_tokens: 3000
  keep_recent_tokens: 400
  summary_tokens: 600
  summarizer: {policy: anchored, limits: {timeout: 60s, init_timeout: 60s}, grants: {model: {summarizer: main}}}
  admission: {quota: {cooldown: 0s, timeout: 60s}}
`)
	store := filepath.Join(t.TempDir(), "mortise.db")
	var stderr strings.Builder
	for i := range 6 {
		args := []string{"run", "-c", cfg, "--store", store, "--thread", "t1", fmt.Sprintf("message %d", i)}
		if code := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &stderr}, links.All()); code != exit.OK {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
	}
	q := p.queries()
	var sent strings.Builder
	for _, m := range q[len(q)-1].Messages {
		sent.WriteString(m.Text())
	}
	sent.WriteString(q[len(q)-1].System)
	if text := sent.String(); !strings.Contains(text, "- The clerk has read /srv/app/main.go.") || strings.Contains(text, "(modified)") {
		t.Errorf("the last run was sent\n%.1500s\nstandard error: %s", text, stderr.String())
	}
}
