package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// shown is the part of what mortise compact show prints that tests look at.
type shown struct {
	Schema  string
	Threads []struct {
		ID           string
		Messages     int
		ViewMessages int `json:"view_messages"`
		State        struct {
			Total   int
			Markers []struct {
				ID, Policy string
				PreTokens  int64 `json:"pre_tokens"`
				PostTokens int64 `json:"post_tokens"`
				At         string
				Quality    struct {
					Overall, Savings float64
					Identifiers      struct{ Total, Kept int }
				}
			}
		}
		Evidence struct{ DecisionCount, AdmittedCount int }
		Events   []struct {
			Kind, Thread, Model string
			At                  string
			AttemptID           string `json:"attempt_id"`
			Decision            *struct{ Schema, Reason string }
		}
	}
}

// must runs a command that must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := mortise(t.Context(), "", args...)
	if code != exit.OK {
		t.Fatalf("mortise %s: exit code %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func show(t *testing.T, folder string) *shown {
	t.Helper()
	var s shown
	if err := json.Unmarshal([]byte(must(t, "compact", "show", folder, "-o", "json")), &s); err != nil || len(s.Threads) != 1 {
		t.Fatalf("%d threads (%v)", len(s.Threads), err)
	}
	return &s
}

// A kept session shows what the report showed, and each undo brings the view before
// it back, byte for byte, down to the log itself.
func TestCompactShowAndUndo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kept.db")
	recording := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	code, r, stderr := run(t, demoConfig(t), recording, "--store", path)
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	decisions := 0
	for _, a := range r.Admissions {
		decisions += a.Count // equal refusals in a row are one entry
	}
	if e := r.Evidence; e == nil || e.DecisionCount != decisions || e.ForegroundImpact.Source != "measured_steps" ||
		e.ForegroundImpact.P99 < e.ForegroundImpact.P95 || e.ForegroundImpact.P99 > 60_000 {
		t.Errorf("evidence %+v of %d decisions", e, decisions)
	}
	s := show(t, path)
	v := s.Threads[0]
	n := len(v.State.Markers)
	if s.Schema != "mortise.compact.show.v1" || v.ID != r.Threads[0].ID || n == 0 || n != r.Threads[0].Compactions || v.State.Total != n ||
		v.Evidence.AdmittedCount != n || v.ViewMessages >= v.Messages {
		t.Fatalf("shown is %+v", v)
	}
	for i, m := range v.State.Markers {
		if m.ID == "" || m.Policy != "summarizers/ledger" || m.PostTokens >= m.PreTokens || m.At == "" || m.Quality.Savings <= 0 || m.Quality.Identifiers.Total == 0 {
			t.Errorf("marker %d is %+v", i, m)
		}
	}
	for _, e := range v.Events {
		about := e.Kind != "fallback" && e.Kind != "breaker" && (e.Decision == nil || e.Decision.Reason == abi.ReasonAllowed) // an attempt
		if e.Thread != v.ID || about && e.AttemptID == "" || e.At == "" || e.Model == "" || (e.Kind == "admission") != (e.Decision != nil) {
			t.Errorf("event %+v", e)
		}
	}
	table := must(t, "compact", "show", path)
	for _, want := range []string{"thread " + v.ID, v.State.Markers[0].ID, "summarizers/ledger", "what survives", fmt.Sprintf("%d admitted", n)} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing from\n%s", want, table)
		}
	}
	m := v.State.Markers[0]
	if saved := fmt.Sprintf("  %.0f%%  ", 100*float64(m.PreTokens-m.PostTokens)/float64(m.PreTokens)); !strings.Contains(table, "of the range") || !strings.Contains(table, saved) {
		t.Errorf("%q is missing from\n%s", saved, table)
	}
	held, err := program.Lock(path + "-inbox") // as mortise serve has it
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := mortise(t.Context(), "", "compact", "undo", path); code != exit.Session || !strings.Contains(stderr, "DELETE /v1/threads/ID/compactions/latest") {
		t.Errorf("of a file in use: exit code %d: %s", code, stderr)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	undoAll(t, path, n, &log)
	if lines := strings.Count(log.String(), "\n"); lines != v.Messages {
		t.Errorf("the last view has %d messages, the log %d", lines, v.Messages)
	}
	if code, _, stderr := mortise(t.Context(), "", "compact", "undo", path); code != exit.Usage || !strings.Contains(stderr, "has no compaction that can be undone") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if again := show(t, path).Threads[0]; again.State.Total != n || len(again.State.Markers) != 0 || again.Events[len(again.Events)-1].Kind != "undone" {
		t.Errorf("shown is %+v", again.State)
	}
}

// undoAll takes one compaction after the other back. The messages behind what each one
// covered stand there as they did, and the last view is written to log.
func undoAll(t *testing.T, path string, n int, log *bytes.Buffer) {
	t.Helper()
	view := must(t, "compact", "show", path, "--view")
	for i := range n {
		out := must(t, "compact", "undo", path)
		before := must(t, "compact", "show", path, "--view")
		if !strings.Contains(out, leftAfter(n-i-1)) || before == view {
			t.Fatalf("undo %d: %s", i, out)
		}
		lines := strings.SplitAfter(view, "\n")
		if tail := strings.Join(lines[len(lines)-4:], ""); !strings.HasSuffix(before, tail) {
			t.Fatalf("undo %d changed the end of the view", i)
		}
		view = before
	}
	if strings.Contains(view, "<conversation-summary>") {
		t.Error("a summary is left")
	}
	log.WriteString(view)
}

func TestCompactRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		code exit.Code
		want string
	}{
		"no file":     {[]string{"show", filepath.Join(folder, "missing")}, exit.Usage, "there is no such file; name the one that mortise run --store has made"},
		"a folder":    {[]string{"undo", folder}, exit.Session, folder + " is a folder"},
		"output":      {[]string{"show", folder, "-o", "xml"}, exit.Usage, "must be table or json"},
		"no argument": {[]string{"undo"}, exit.Usage, "FILE|URL is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := mortise(t.Context(), "", append([]string{"compact"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

const masked = `
plugins: []
compaction:
  window_tokens: 200000
  threshold_tokens: 150000
  keep_recent_tokens: 3000
  summary_tokens: 1500
  mask_tokens: 300
  summarizer: {module: $ROOT/testdata/guests/summarizers.wasm}
`

// Long outputs are masked in the view, and the log keeps them.
func TestMasking(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kept.db")
	recording := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	code, r, stderr := run(t, config(t, masked), recording, "--store", path)
	if code != exit.OK || len(r.Compactions) > 0 {
		t.Fatalf("exit code %d, %d compactions: %s", code, len(r.Compactions), stderr)
	}
	v := r.Threads[0]
	if v.ViewTokens >= v.Tokens {
		t.Errorf("the model sees %d of %d tokens", v.ViewTokens, v.Tokens)
	}
	if log := must(t, "compact", "show", path, "--view"); strings.Contains(log, "[Content compacted: original ~") {
		t.Error("the log was masked")
	}
}

// Tasks that have a folder keep the outputs there: there is one reader of handles.
func TestMaskingBesideTasks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text := masked + "tasks: {dir: " + folder + "}\n"
	code, r, stderr := run(t, config(t, text), filepath.Join(root(t), "examples", "sessions", "review.jsonl"))
	if code != exit.OK || r.Threads[0].ViewTokens >= r.Threads[0].Tokens {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if n := outputs(t, filepath.Join(folder, "tasks.db")); n == 0 {
		t.Error("no outputs were stored")
	}
}

// outputs counts the outputs in a file.
func outputs(t *testing.T, path string) int {
	t.Helper()
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path, Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close(context.WithoutCancel(t.Context()))
	all, err := file.Count(t.Context(), "blob")
	if err != nil {
		t.Fatal(err)
	}
	return all["all"]
}

// Wrong settings are reported by name.
func TestCompactionConfigRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ line, want string }{
		"mode":    {"mode: all", `compaction.mode "all"`},
		"bars":    {"bars: {paths: 2}", "compaction.bars: paths is 2"},
		"signals": {"admission: {signals: {max_error_rate: 2000}}", "compaction.admission.signals"},
		"mask":    {"mask_tokens: -1", "mask_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "compaction:\n  summarizer: {module: $ROOT/testdata/guests/summarizers.wasm}\n  " + tc.line + "\n"
			code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", config(t, text), filepath.Join(root(t), "examples", "sessions", "review.jsonl"))
			if code == exit.OK || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

// The gate is the operator's: nothing is swapped in that is below a bar.
func TestBars(t *testing.T) {
	t.Parallel()
	text := strings.Replace(masked, "threshold_tokens: 150000\n", "threshold_tokens: 8000\n  bars: {identifiers: 1}\n  admission: {quota: {cooldown: 0s}}\n", 1)
	text = strings.Replace(text, "mask_tokens: 300", "mask_tokens: 0", 1)
	text = strings.Replace(text, "summary_tokens: 1500", "summary_tokens: 100", 1)
	_, r, stderr := run(t, config(t, text), filepath.Join(root(t), "examples", "sessions", "review.jsonl"))
	if r.kinds()["refused"] == 0 {
		t.Errorf("compactions %v: %s", r.kinds(), stderr)
	}
	for _, c := range r.Compactions {
		if c.Kind == "refused" && c.Policy != "digest" && !strings.Contains(c.Reason, "bars.identifiers: ") {
			t.Errorf("refused for %q", c.Reason)
		}
		if c.Kind == "swapped" && c.Quality.Identifiers.Kept < c.Quality.Identifiers.Total {
			t.Errorf("swapped in with %+v", c.Quality.Identifiers)
		}
	}
}
