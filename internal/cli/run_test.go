package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// TestMain keeps the decision records of the tests out of the user's folder.
func TestMain(m *testing.M) {
	host.CompileChild()
	beChild()
	dir, err := os.MkdirTemp("", "mortise-state")
	if err != nil {
		panic(err)
	}
	if err := errors.Join(os.Setenv("XDG_STATE_HOME", dir), os.Unsetenv("MORTISE_RECORD_DIR")); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// root is the top of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// shared is where recorded sessions of others are, if they are there.
func shared(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared")
	}
	dir = filepath.Join(dir, "data", "transcripts")
	if _, err := os.Stat(dir); err != nil {
		testskip.Skip(t, "the shared recordings are not there (%s); set MORTISE_SHARED", dir)
	}
	return dir
}

// report is the part of the JSON report that tests look at.
type report struct {
	Modules []struct {
		Name, State, Reason, Version string
		Granted, Notes               []string
	}
	Guests  []struct{ Denied, HTTP, KV int64 }
	Reloads []struct{ Module, From, To, Error string }
	Session struct{ Conversations, Messages int }
	Runs    struct {
		Count, Steps int
		Terminations map[string]int
		Failures     []string
		List         []struct{ ID, Thread, Termination string }
	}
	RecordStore string `json:"record_store"`
	Threads     []struct {
		ID          string
		Messages    int
		Tokens      int64
		ViewTokens  int64 `json:"view_tokens"`
		Complete    bool
		Compactions int
		Ended       string
	}
	Tools []struct {
		Plugin, Tool  string
		Calls, Failed int
	}
	Hooks   []struct{ Plugin, Phase string }
	Changes []struct {
		Plugin, What, Note string
		Count              int
	}
	Gates      []struct{ Plugin, Action, Reason string }
	Admissions []struct {
		Count    int
		Detail   string
		Decision struct {
			Schema, Reason string
			Allowed        bool
		}
	}
	Compactions []struct {
		Kind           string
		Policy, Reason string
		Thread         string
		PreTokens      int64 `json:"pre_tokens"`
		PostTokens     int64 `json:"post_tokens"`
		StepsMeanwhile int   `json:"steps_meanwhile"`
		Quality        *struct {
			Overall     float64
			Identifiers struct{ Total, Kept int }
		}
	}
	Evidence *struct {
		DecisionCount, AdmittedCount int
		ForegroundImpact             struct {
			Source string
			P95    int64 `json:"p95Ms"`
			P99    int64 `json:"p99Ms"`
		}
	}
	Interrupted bool
	Error       string
}

func (r *report) kinds() map[string]int {
	out := make(map[string]int)
	for _, c := range r.Compactions {
		out[c.Kind]++
	}
	return out
}

// mortise runs the command line in this process.
func mortise(ctx context.Context, stdin string, args ...string) (code exit.Code, stdout, stderr string) {
	var out, err bytes.Buffer
	code = cli.Main(ctx, args, cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &err}, links.All())
	return code, out.String(), err.String()
}

// run runs mortise run and reads its JSON report.
func run(t *testing.T, config, session string, more ...string) (exit.Code, *report, string) {
	t.Helper()
	args := append([]string{"run", "--quiet", "--output", "json", "--config", config, "--pace", "0"}, more...)
	code, stdout, stderr := mortise(t.Context(), "", append(args, session)...)
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("exit code %d, no report: %v\n%s\n%s", code, err, stdout, stderr)
	}
	return code, &r, stderr
}

// config writes a mortise.yaml into a folder of its own. $ROOT expands to the
// top of the repository.
func config(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mortise.yaml")
	text = strings.ReplaceAll(text, "$ROOT", root(t))
	if err := os.WriteFile(path, []byte("version: 1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func demoConfig(t *testing.T) string {
	t.Helper()
	return filepath.Join(root(t), "examples", "mortise.yaml")
}

func TestEveryTranscriptRunsToItsEnd(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	ran, due, compacted := 0, 0, 0
	err := filepath.WalkDir(shared(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "LICENSE") {
			return err
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			if filepath.Base(path) == "report.json" {
				refusesAReport(t, path)
				return
			}
			ran++
			began, ended := transcript(t, path)
			due, compacted = due+began, compacted+ended
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ran < 10 || compacted < due/2 {
		t.Errorf("only %d recordings were run, and %d of %d threads compacted", ran, compacted, due)
	}
}

func refusesAReport(t *testing.T, path string) {
	t.Helper()
	code, _, stderr := mortise(t.Context(), "", "run", "-c", demoConfig(t), path)
	if code != exit.Session || !strings.Contains(stderr, "line 1: not a recorded session; understood are:") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// transcript replays a recording. The agent checks the structure of every
// request before it asks the model, so a run that ends well has had calls and
// results in pairs after every swap.
func transcript(t *testing.T, path string) (due, compacted int) {
	t.Helper()
	const threshold = 16_000 // of the config
	code, r, stderr := run(t, demoConfig(t), path)
	if code != exit.OK || r.Error != "" || len(r.Runs.Failures) > 0 {
		t.Fatalf("exit code %d: %s %v\n%s", code, r.Error, r.Runs.Failures, stderr)
	}
	for _, v := range r.Threads {
		if !v.Complete {
			t.Errorf("%s was not played to its end", v.ID)
		}
		// A little above the threshold there may be too little to summarize, and on a busy machine a recording may be over before
		// its first compaction is.
		begun := false
		for _, c := range r.Compactions {
			begun = begun || c.Thread == v.ID && c.Kind == "started"
		}
		if v.Tokens > threshold*5/4 && !begun {
			t.Errorf("%s has %d tokens, and no compaction was begun", v.ID, v.Tokens)
		}
		if begun {
			due++
		}
		if v.Compactions > 0 {
			compacted++
		}
		if v.Compactions > 0 && v.ViewTokens >= v.Tokens {
			t.Errorf("%s: %d compactions, but the model sees %d of %d tokens", v.ID, v.Compactions, v.ViewTokens, v.Tokens)
		}
	}
	if len(r.Threads) != r.Session.Conversations {
		t.Errorf("%d threads for %d conversations", len(r.Threads), r.Session.Conversations)
	}
	for _, c := range r.Compactions {
		if c.Kind == "swapped" && (c.Quality == nil || c.PostTokens >= c.PreTokens) {
			t.Errorf("%s: swapped %d -> %d tokens, quality %v", c.Thread, c.PreTokens, c.PostTokens, c.Quality)
		}
	}
	return due, compacted
}

// TestDemo is what make demo-replay runs.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"review.jsonl", "metering.jsonl"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := filepath.Join(root(t), "examples", "sessions", name)
			args := []string{"run", "--quiet", "--output", "json", "--config", demoConfig(t), session}
			code, stdout, stderr := mortise(t.Context(), "", args...)
			var r report
			if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exit.OK {
				t.Fatalf("exit code %d, %v\n%s", code, err, stderr)
			}
			meanwhile := 0
			for _, c := range r.Compactions {
				if c.Kind == "swapped" && c.Policy == "summarizers/ledger" {
					meanwhile += c.StepsMeanwhile
				}
			}
			kinds := r.kinds()
			if kinds["started"] == 0 || kinds["swapped"] == 0 || kinds["failed"]+kinds["refused"] > 0 {
				t.Errorf("compactions %v", kinds)
			}
			if meanwhile == 0 {
				t.Error("no step of the run went on while a compaction was under way")
			}
			if len(r.Admissions) == 0 || !r.Admissions[0].Decision.Allowed || r.Admissions[0].Decision.Schema != "pi.compaction.admission.v1" {
				t.Errorf("admissions %+v", r.Admissions)
			}
			for _, m := range r.Modules {
				if m.State != "loaded" {
					t.Errorf("module %+v", m)
				}
			}
		})
	}
}

const policies = `
plugins: []
compaction:
  window_tokens: 64000
  threshold_tokens: 8000
  keep_recent_tokens: 3000
  summary_tokens: 1500
  min_survival: -1
  summarizer: {module: %s}
  admission: {module: %s, quota: {cooldown: 0s}}
`

// TestSwappingAPolicyIsAnEditOfTheConfig runs one session under four pairs of
// policies, which differ in nothing but the names of two files.
func TestSwappingAPolicyIsAnEditOfTheConfig(t *testing.T) {
	t.Parallel()
	session := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	const guests, own = "$ROOT/testdata/guests/", "$ROOT/internal/cli/testdata/"
	for name, tc := range map[string]struct {
		summarizer, admission  string
		reason, policy, detail string
		swapped                bool
	}{
		"bundled":        {guests + "summarizers.wasm", guests + "admission.wasm", "allowed", "summarizers", "", true},
		"own summarizer": {own + "fixed.wasm", guests + "admission.wasm", "allowed", "fixed", "", true},
		"own admission":  {guests + "summarizers.wasm", own + "deny.wasm", "quiet_hours", "", "No compaction on this thread today.", false},
		"both own":       {own + "fixed.wasm", own + "deny.wasm", "quiet_hours", "", "No compaction on this thread today.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, r, stderr := run(t, config(t, fmt.Sprintf(policies, tc.summarizer, tc.admission)), session)
			if code != exit.OK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			// The bundled one may refuse at first, while too little would be saved.
			i := 0
			for i < len(r.Admissions)-1 && r.Admissions[i].Decision.Reason == "saves_too_little" {
				i++
			}
			if a := r.Admissions[i]; a.Decision.Reason != tc.reason || a.Decision.Allowed != tc.swapped || (tc.detail != "" && a.Detail != tc.detail) {
				t.Errorf("decision %+v", a)
			}
			if swapped := r.kinds()["swapped"] > 0; swapped != tc.swapped {
				t.Errorf("compactions %v", r.kinds())
			}
			for _, c := range r.Compactions {
				if c.Kind == "swapped" && c.Policy != tc.policy {
					t.Errorf("policy %q, want %q", c.Policy, tc.policy)
				}
			}
		})
	}
}

// TestInterrupt cancels a run that would take long.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	session := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	progress := &trigger{on: "step 50", do: cancel}
	code := cli.Main(ctx, []string{"run", "-o", "json", "-c", demoConfig(t), "--pace", "2ms", session},
		cli.Streams{In: strings.NewReader(""), Out: &out, Err: progress}, links.All())
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if code != exit.Interrupted || !r.Interrupted || r.Runs.Terminations["cancelled"] != 1 || r.Runs.Steps < 50 {
		t.Errorf("exit code %d, interrupted %v, runs %+v", code, r.Interrupted, r.Runs)
	}
	if len(r.Threads) != 1 || r.Threads[0].Complete {
		t.Errorf("threads %+v", r.Threads)
	}
	if !strings.Contains(progress.String(), "interrupted; the report is partial") {
		t.Error("standard error does not say that the report is partial")
	}
}

// trigger does something when a text is written.
type trigger struct {
	bytes.Buffer
	on string
	do func()
}

func (w *trigger) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.on) {
		w.do()
	}
	return n, err
}
