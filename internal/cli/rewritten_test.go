package cli_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/thread"
)

// Explain names the plugin that changed the arguments that a gate judged again.
func TestExplainRewrittenCall(t *testing.T) {
	t.Parallel()
	e := thread.DecisionOf(&phases.Record{
		Phase: abi.ToolGate, Plugin: "guard", ToolName: "bash", CallID: "c1", Attempt: 1, Recheck: true, RewrittenBy: []string{"jsonfix", "evil\x1b[2J"},
		Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "not that"},
	})
	got := strings.Join(cli.EntryWords(&e), "|")
	if want := "judged again: jsonfix, evil [2J changed the arguments|block bash (c1): not that"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e = thread.DecisionOf(&phases.Record{Phase: abi.BeforeToolExecute, Attempt: 1, RewrittenBy: []string{"a"}, Applied: []phases.Change{{What: "rewrite_call", Target: "bash", Note: "a quote"}}})
	got = strings.Join(cli.EntryWords(&e), "|")
	if want := "of a call whose arguments a changed|rewrite_call bash: a quote"; got != want || e.Verdict != thread.Applied {
		t.Errorf("%q, want %q", got, want)
	}
}

// The report notes that a recorded result is not that of a rewritten call.
func TestReportCountsRewrittenCalls(t *testing.T) {
	t.Parallel()
	if got := cli.PrintRuns(cli.RunsReport{ToolCalls: 3, Rewritten: 2}); !strings.Contains(got, "plugins rewrote 2 tool calls; results from the recording are those of the recorded arguments") {
		t.Errorf("%s", got)
	}
	if got := cli.PrintRuns(cli.RunsReport{ToolCalls: 3}); strings.Contains(got, "rewrote") {
		t.Errorf("%s", got)
	}
}

// A stored answer that a plugin replaced is still that of the recording.
func TestReplacedAnswerIsTheRecorded(t *testing.T) {
	t.Parallel()
	recorded := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("secret")}, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "ls"}}}
	kept := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("[removed]")}}
	if cli.SameMessage(&recorded, &kept) {
		t.Error("another text is the same message")
	}
	kept.Metadata = map[string]any{abi.MetadataOriginal: map[string]any{
		"content": []any{map[string]any{"type": "text", "text": "secret"}}, "tool_calls": []any{map[string]any{"id": "c1", "name": "ls"}},
	}}
	if !cli.SameMessage(&recorded, &kept) {
		t.Error("the original is not compared")
	}
}
