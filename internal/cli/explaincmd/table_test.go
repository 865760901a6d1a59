package explaincmd_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/cli/explaincmd"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/thread"
)

// TestExplainAnswer: the table has who decided about a call, what and why.
func TestExplainAnswer(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var out bytes.Buffer
	table := term.NewTable(&out)
	explaincmd.Table(table, &thread.Record{
		Starts:  []thread.RunStart{{At: at}},
		Entries: []thread.Decision{{At: at, Step: 2, Tool: "pay", CallID: "c1", Answer: &thread.Answer{Ticket: "ask-1", Choice: "deny", Reason: "too dear", By: "ann"}}},
		Ends:    []thread.RunEnd{{At: at, Type: "natural", Steps: 1}},
	})
	if err := table.End(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"2 answer pay ann deny pay (c1), ticket ask-1, at 2026-03-04 05:06:07: too dear", "after 1 step:"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

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
