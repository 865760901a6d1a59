package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/exit"
)

// verdict is the top of the JSON report.
type verdict struct {
	Verdict struct {
		Problems    []string
		Faults      int
		Compactions int
		Tokens      int64
		ViewTokens  int64  `json:"view_tokens"`
		ExitCode    int    `json:"exit_code"`
		Meaning     string `json:"exit_meaning"`
	}
}

// TestStrict: failures of plugins are in the verdict, and with --strict in the exit code.
func TestStrict(t *testing.T) {
	t.Parallel()
	cfg := config(t, "plugins: [{name: bad, module: $ROOT/plugins/testdata/trap.wasm, on_failure: ignore}]\n")
	session := beginning(t, review(t), 5)
	for strict, want := range map[string]exit.Code{"--strict=false": exit.OK, "--strict": exit.Run} {
		code, stdout, stderr := mortise(t.Context(), "", "run", "-q", "-o", "json", strict, "-c", cfg, session)
		var v verdict
		if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != want || v.Verdict.ExitCode != int(want) || v.Verdict.Meaning != want.String() {
			t.Fatalf("%s: exit code %d, %v, %+v: %s", strict, code, err, v, stderr)
		}
		if v.Verdict.Faults != 1 || len(v.Verdict.Problems) != 1 || !strings.HasPrefix(v.Verdict.Problems[0], "plugin bad failed in ") || v.Verdict.Tokens == 0 {
			t.Errorf("%+v", v.Verdict)
		}
		if said := strings.Contains(stderr, "--strict: 1 fault of plugins or policies, the first: plugin bad failed in "); said != (want == exit.Run) {
			t.Errorf("%s: %s", strict, stderr)
		}
	}
	code, stdout, stderr := mortise(t.Context(), "", "run", "-q", "--strict", "-c", cfg, session)
	if code != exit.Run || !strings.HasPrefix(stdout, "1 problem, exit code 1: a run, a plugin or a policy failed\n  plugin bad failed in ") {
		t.Errorf("exit code %d: %s %s", code, stdout, stderr)
	}
	// The reason is whole, and names the module once.
	line := regexp.MustCompile(`(?m)^ {2}bad .*unreachable.*$`).FindString(stdout)
	if line == "" || strings.Contains(line, "…") || strings.Count(line, `module "bad"`) != 1 || strings.Contains(stdout, " denied") {
		t.Errorf("%q in %s", line, stdout)
	}
	// A fine plugin passes.
	code, stdout, _ = mortise(t.Context(), "", "run", "-q", "--strict", "-c", config(t, "plugins: [{module: $ROOT/testdata/guests/guard.wasm}]\n"), session)
	if code != exit.OK || !strings.HasPrefix(stdout, "no problems, exit code 0: done\n") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// TestErrorsAreSaidOnce: what ends the command is on standard error once, and in the report as a problem.
func TestErrorsAreSaidOnce(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := mortise(t.Context(), "", "run", "-c", config(t, "plugins: [{name: bad, module: nowhere.wasm}]\n"), beginning(t, review(t), 3))
	if code != exit.Module || strings.Count(stderr, "nowhere.wasm") != 1 || strings.Contains(stdout, "error:") || !strings.HasPrefix(stdout, "1 problem, exit code 5: a module failed to load\n") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestEmptyLists: lists of the JSON documents are empty and not null, and each begins with its schema.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	dir, records, session := filepath.Join(t.TempDir(), "x.db"), filepath.Join(t.TempDir(), "y.db"), beginning(t, review(t), 3)
	_, report, _ := mortise(t.Context(), "", "run", "-q", "-o", "json", "-c", config(t, ""), "--store", dir, "--no-record", session)
	_, recorded, _ := mortise(t.Context(), "", "run", "-q", "-o", "json", "-c", config(t, ""), "--record-store", records, session)
	var r struct {
		Runs struct{ List []struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(recorded), &r); err != nil || len(r.Runs.List) == 0 {
		t.Fatalf("%v: %s", err, report)
	}
	for name, text := range map[string]string{
		"report":  report,
		"show":    must(t, "compact", "show", dir, "-o", "json"),
		"explain": must(t, "explain", r.Runs.List[0].ID, "--store", records, "-o", "json", "--plugin", "none"),
		"runs":    must(t, "explain", "--store", records, "-o", "json"),
	} {
		if !strings.HasPrefix(text, "{\n  \"schema\": \"mortise.") || regexp.MustCompile(`"(modules|guests|threads|hooks|changes|gates|admissions|compactions|events|entries|runs|problems)": null`).MatchString(text) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestWordsOfTheConfig: messages for operators name keys of the config, not fields of Go.
func TestWordsOfTheConfig(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("0", 64)
	session := write(t, "s.json", []byte(oneMessage))
	for name, tc := range map[string]struct {
		config, says string
		code         exit.Code
	}{
		"rounds":     {"agent: {max_rounds: -5}\n", "agent.max_rounds: is -5; write a number from 1, or leave it out for no limit", exit.Config},
		"checksum":   {"plugins: [{module: x.wasm, sha256: " + digits + "}]\n", `plugins[0].sha256: is read as a number; put it in quotes: sha256: "` + digits + `"`, exit.Config},
		"no hash":    {"plugins: [{module: x.wasm, sha256: abc}]\n", "plugins[0].sha256: is no checksum; write the 64 hexadecimal digits", exit.Config},
		"input":      {"limits: {input_mib: 100}\n", "limits.input_mib: is 100, more than half of limits.memory_mib (64)", exit.Config},
		"own input":  {"limits: {memory_mib: 32}\nplugins: [{module: x.wasm, limits: {input_mib: 20}}]\n", "plugins[0]: limits.input_mib: is 20, more than half of limits.memory_mib (32)", exit.Config},
		"headroom":   {"compaction: {admission: {signals: {headroom_mib: -1}}}\n", "compaction.admission.signals.headroom_mib: is -1, must not be negative", exit.Config},
		"error rate": {"compaction: {admission: {signals: {max_error_rate: 1001}}}\n", "max_error_rate: is 1001, must be at most 1000", exit.Config},
		"memory":     {"plugins: [{name: m, module: $ROOT/host/testdata/memory_start.wasm}]\n", "needs 2000 pages of memory at its start and may use 1024; raise limits.memory_mib (16 pages are 1 MiB), or build it", exit.Module},
		"import":     {"plugins: [{name: m, module: $ROOT/host/testdata/import_unknown.wasm}]\n", "which is not offered; import only from extism:host/env, mortise:host/1 and wasi_snapshot_preview1\n", exit.Module},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", config(t, tc.config), session)
			if code != tc.code || !strings.Contains(stderr, tc.says) || regexp.MustCompile(`\b(Config|Spec|Limits|Grants)\.[A-Z]`).MatchString(stderr) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
	if code, _, stderr := mortise(t.Context(), "", "run", "-c", write(t, "mortise.yaml", []byte("agent: {}\n")), session); code != exit.Config || !strings.Contains(stderr, "version: is missing; write version: 1") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	load := &host.LoadError{Module: "m", Problem: "is large", Hint: "raise Limits.CompileTimeout, or build it smaller", Settings: []string{"Limits.CompileTimeout"}}
	if text := exit.Text(fmt.Errorf("reload: %w", errors.Join(load, errors.New("else")))); text != "reload: host: module \"m\" is large; raise limits.compile_timeout, or build it smaller\nelse" {
		t.Errorf("%s", text)
	}
}
