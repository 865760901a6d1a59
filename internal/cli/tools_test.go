package cli_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

// countsMoney is a recording with calls of tools that a plugin has now, and of one
// that it has not.
const countsMoney = `
{"role": "user", "content": "Add and pay."}
{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "sum", "arguments": "{\"values\": [1, 41]}"}}, {"id": "c2", "function": {"name": "bash", "arguments": "{}"}}]}
{"role": "tool", "tool_call_id": "c1", "content": "recorded sum"}
{"role": "tool", "tool_call_id": "c2", "content": "recorded bash"}
{"role": "assistant", "tool_calls": [{"id": "c3", "function": {"name": "sum", "arguments": "{\"values\": \"no list\"}"}}]}
{"role": "tool", "tool_call_id": "c3", "content": "recorded sum"}
{"role": "assistant", "tool_calls": [{"id": "c4", "function": {"name": "pay", "arguments": "{}"}}]}
{"role": "tool", "tool_call_id": "c4", "content": "paid"}
{"role": "assistant", "content": "Done."}
`

// TestToolsOfPlugins: calls of a tool that a plugin registers are the plugin's, in a
// replay too. The others are answered from the recording.
func TestToolsOfPlugins(t *testing.T) {
	t.Parallel()
	session := write(t, "s.jsonl", []byte(countsMoney))
	cfg := config(t, "plugins:\n  - {name: bank, module: $ROOT/testdata/guests/teller.wasm}\n")
	code, r, stderr := run(t, cfg, session)
	if code != exit.OK || !r.Threads[0].Complete {
		t.Fatalf("exit code %d, threads %+v: %s", code, r.Threads, stderr)
	}
	got := make(map[string][2]int)
	for _, tool := range r.Tools {
		if tool.Plugin != "bank" {
			t.Errorf("tool %+v", tool)
		}
		got[tool.Tool] = [2]int{tool.Calls, tool.Failed}
	}
	// Of the two sums, one has arguments that the schema refuses; pay asks a person.
	if len(got) != 7 || got["sum"] != [2]int{2, 1} || got["pay"] != [2]int{1, 0} || got["trap"] != [2]int{} {
		t.Errorf("tools %v", got)
	}
	if r.Runs.Terminations["suspended"] != 1 || r.Runs.Terminations["natural_end"] != 1 {
		t.Errorf("terminations %v", r.Runs.Terminations)
	}
	_, stdout, _ := mortise(t.Context(), "", "run", "-q", "-c", cfg, session)
	if !strings.Contains(stdout, "tools of plugins") {
		t.Errorf("the table does not list the tools:\n%s", stdout)
	}

	// Without the plugin everything comes from the recording.
	_, r, _ = run(t, config(t, "plugins: []\n"), session)
	if len(r.Tools) != 0 || r.Runs.Terminations["suspended"] != 0 || !r.Threads[0].Complete {
		t.Errorf("tools %+v, terminations %v", r.Tools, r.Runs.Terminations)
	}
}

// TestReplayEndsWhereRunsDo: a plugin that stops each run before the model is asked
// ends the replay, which says so.
func TestReplayEndsWhereRunsDo(t *testing.T) {
	t.Parallel()
	cfg := config(t, "plugins:\n  - {name: broken, module: $ROOT/internal/cli/testdata/stop.wasm}\n")
	code, r, stderr := run(t, cfg, write(t, "s.jsonl", []byte(countsMoney)))
	if code != exit.OK || len(r.Threads) != 1 || r.Threads[0].Complete || !strings.Contains(r.Threads[0].Ended, "stopped:closed") {
		t.Errorf("exit code %d, threads %+v: %s", code, r.Threads, stderr)
	}
}
