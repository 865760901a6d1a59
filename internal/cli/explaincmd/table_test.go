package explaincmd_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/cli/explaincmd"
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
	got := strings.Join(explaincmd.Words(&e), "|")
	if want := "judged again: jsonfix, evil [2J changed the arguments|block bash (c1): not that"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e = thread.DecisionOf(&phases.Record{Phase: abi.BeforeToolExecute, Attempt: 1, RewrittenBy: []string{"a"}, Applied: []phases.Change{{What: "rewrite_call", Target: "bash", Note: "a quote"}}})
	got = strings.Join(explaincmd.Words(&e), "|")
	if want := "of a call whose arguments a changed|rewrite_call bash: a quote"; got != want || e.Verdict != thread.Applied {
		t.Errorf("%q, want %q", got, want)
	}
}
