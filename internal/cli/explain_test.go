package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// twoTurns is a recording in which a command is asked for, and then something else.
const twoTurns = `
{"role": "system", "content": "You clean up."}
{"role": "user", "content": "Clean up. The password is hunter2-swordfish."}
{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": "{\"command\": \"rm -rf / --no-preserve-root\"}"}}]}
{"role": "tool", "tool_call_id": "c1", "content": "done"}
{"role": "assistant", "content": "Clean."}
{"role": "user", "content": "Thanks."}
{"role": "assistant", "content": "Any time."}
`

// explained is what mortise explain prints as JSON.
type explained struct {
	Schema string
	RunID  string `json:"run_id"`
	Starts []struct {
		Source string
		Run    struct {
			ThreadID string `json:"thread_id"`
		}
	}
	Ends    []struct{ Type, Detail string }
	Entries []struct {
		Phase, Plugin, Tool, Verdict, Error string
		CallID                              string `json:"call_id"`
		Attempt                             int
		Saw                                 *struct{ Messages, Total int }
		Gate                                *struct {
			Action, Reason string
			Overridden     bool
		}
		Refused []struct{ What, Reason string }
	}
}

// recorded runs two turns with three plugins, and returns the folder of the records
// and the report.
func recorded(t *testing.T) (dir string, r *report) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "records.db")
	cfg := config(t, `
plugins:
  - {name: guard, module: $ROOT/testdata/guests/guard.wasm}
  - {name: second, module: $ROOT/plugins/testdata/json.wasm, priority: 10}
  - {name: broken, module: $ROOT/plugins/testdata/trap.wasm, on_failure: ignore}
`)
	code, r, stderr := run(t, cfg, write(t, "s.jsonl", []byte(twoTurns)), "--record-store", dir)
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return dir, r
}

func TestExplain(t *testing.T) {
	t.Parallel()
	dir, r := recorded(t)
	if len(r.Runs.List) != r.Runs.Count || r.RecordStore != dir {
		t.Fatalf("report lists %+v, %d runs, records in %q", r.Runs.List, r.Runs.Count, r.RecordStore)
	}
	first := r.Runs.List[0]
	code, stdout, stderr := mortise(t.Context(), "", "explain", first.ID, "--store", dir, "--output", "json")
	var e explained
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || code != exit.OK {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	if e.Schema != "mortise.explain.v1" || e.RunID != first.ID || len(e.Starts) != 1 || e.Starts[0].Run.ThreadID != first.Thread || len(e.Ends) != 1 || e.Ends[0].Type != "blocked" {
		t.Errorf("explained %+v", e)
	}
	if !strings.HasSuffix(e.Starts[0].Source, "s.jsonl") {
		t.Errorf("source %q", e.Starts[0].Source)
	}
	guard, second, broken := 0, 0, 0
	for _, d := range e.Entries {
		switch {
		case d.Plugin == "guard" && d.Phase == "tool_gate":
			guard++
			if d.Verdict != "applied" || d.Gate == nil || d.Gate.Action != "block" || !strings.Contains(d.Gate.Reason, "recursive_delete") || d.Tool != "bash" || d.CallID != "c1" {
				t.Errorf("guard's decision %+v %+v", d, d.Gate)
			}
			if d.Saw == nil || d.Saw.Total != 2 {
				t.Errorf("guard saw %+v", d.Saw)
			}
		case d.Plugin == "second":
			second++
			if d.Verdict != "overridden" || !d.Gate.Overridden || d.Gate.Reason != "said in JSON" {
				t.Errorf("the second gate's decision %+v %+v", d, d.Gate)
			}
		case d.Plugin == "broken":
			broken++
			if d.Verdict != "failed" || !strings.Contains(d.Error, "unreachable") {
				t.Errorf("the broken one's entry %+v", d)
			}
		}
	}
	if guard != 1 || second != 1 || broken == 0 {
		t.Errorf("%d decisions of guard, %d of the second gate, %d of the broken one", guard, second, broken)
	}
	if strings.Contains(stdout, "hunter2") || strings.Contains(stdout, "Clean up") {
		t.Error("the record holds what was said")
	}
}

func TestExplainTable(t *testing.T) {
	t.Parallel()
	dir, r := recorded(t)
	id := r.Runs.List[0].ID
	code, stdout, stderr := mortise(t.Context(), "", "explain", id[:len(id)-4], "--store", dir)
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		"run " + id, "ended", "blocked", "recursive_delete", "tool_gate bash", "said in JSON [overridden: another decision counts]", "failed", "unreachable",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table does not say %q:\n%s", want, stdout)
		}
	}
	_, stdout, _ = mortise(t.Context(), "", "explain", id, "--store", dir, "--plugin", "second")
	if strings.Contains(stdout, "recursive_delete  ") || !strings.Contains(stdout, "said in JSON") || strings.Contains(stdout, "unreachable") {
		t.Errorf("of one plugin:\n%s", stdout)
	}
}

// Without a run, the newest are listed; the environment names the folder too, and
// mortise.yaml.
func TestExplainLists(t *testing.T) {
	t.Parallel()
	dir, r := recorded(t)
	_, stdout, _ := mortise(t.Context(), "", "explain", "--store", dir)
	for _, run := range r.Runs.List {
		if !strings.Contains(stdout, run.ID) {
			t.Errorf("%s is not listed:\n%s", run.ID, stdout)
		}
	}
	cfg := config(t, "record: {store: "+dir+"}\n")
	code, stdout, stderr := mortise(t.Context(), "", "explain", "-c", cfg, "-o", "json")
	var list struct {
		Store string
		Runs  []struct{ Source string }
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != exit.OK || list.Store != dir || len(list.Runs) != r.Runs.Count {
		t.Errorf("exit code %d, %v, %+v: %s", code, err, list, stderr)
	}
}

func TestExplainEnvironment(t *testing.T) {
	dir, r := recorded(t)
	t.Setenv("MORTISE_RECORD_STORE", dir)
	if code, stdout, stderr := mortise(t.Context(), "", "explain", r.Runs.List[0].ID); code != exit.OK || !strings.Contains(stdout, "blocked") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestExplainRefuses(t *testing.T) {
	t.Parallel()
	dir, r := recorded(t)
	known := r.Runs.List[0].ID
	for name, tc := range map[string]struct {
		args []string
		code exit.Code
		says string
	}{
		"unknown":         {[]string{"zzz", "--store", dir}, exit.Usage, known},
		"ambiguous":       {[]string{known[:4], "--store", dir}, exit.Usage, "write more of it"},
		"no file":         {[]string{known, "--store", dir + "none"}, exit.Usage, "mortise run writes them"},
		"no config":       {[]string{known, "-c", "nowhere.yaml"}, exit.Config, "there is no such file"},
		"output":          {[]string{known, "-o", "xml"}, exit.Usage, "must be table or json"},
		"out of the room": {[]string{"../secret", "--store", dir}, exit.Usage, "there is no record of it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := mortise(t.Context(), "", append([]string{"explain"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stderr, tc.says) || stdout != "" {
				t.Errorf("exit code %d, want %d, %q: %s", code, tc.code, tc.says, stderr)
			}
		})
	}
}

// TestNoRecord: nothing is kept unless requested, and a folder that was asked for
// and cannot be used is an error.
func TestNoRecord(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "records")
	session := write(t, "s.json", []byte(oneMessage))
	for name, tc := range map[string]struct {
		config string
		args   []string
	}{
		"flag":   {"plugins: []\n", []string{"--no-record", "--record-store", dir}},
		"config": {"record: {store: " + dir + ", disabled: true}\n", nil},
	} {
		code, r, stderr := run(t, config(t, tc.config), session, tc.args...)
		if _, err := os.Stat(dir); code != exit.OK || err == nil || r.RecordStore != "" {
			t.Errorf("%s: exit code %d, folder %v, report %q: %s", name, code, err, r.RecordStore, stderr)
		}
	}
	for _, bad := range []string{"record: {keep: -1}\n", "record: {store: " + session + "}\n"} {
		code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", config(t, bad), session)
		if code != exit.Config || !strings.Contains(stderr, "record") {
			t.Errorf("%q: exit code %d: %s", bad, code, stderr)
		}
	}
}
