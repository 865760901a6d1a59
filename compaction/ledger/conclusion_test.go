package ledger_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/ledger"
)

// TestConclusions: of the agent's last text before the next request the page quotes what was done and found, not that
// something follows.
func TestConclusions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"announced list": {
			"You're right.\n\n## Changes\n\n1. **`retry.go`** - Added a limit of three attempts\n- Removed the old loop, which slept\n\nShall I push it?",
			"“**`retry.go`** - Added a limit of three attempts”\n  → “Removed the old loop, which slept”",
		},
		"a word in front": {"Fixed. The loop slept while it held the lock. It no longer holds it there.", "“Fixed. The loop slept while it held the lock.”\n  → “It no longer holds it there.”"},
		"code and tables": {"All tests pass now.\n```go\nfunc secretName() {}\n```\n| a | b |\n[docs](https://example.com/docs)", "“All tests pass now.”"},
		"nothing else":    {"Let me look at the queue first:", "“Let me look at the queue first:”"},
		"a long sentence": {"All tests pass now. " + strings.Repeat("This sentence is too long to be shown. ", 1) + strings.Repeat("x", 600), "“All tests pass now. This sentence is too long to be shown.”"},
	} {
		s := (&story{}).user("fix the retry").edit("/w/retry.go").agent(tc.text).user("thanks, and now the docs").edit("/w/docs.md").agent("No response requested.").state()
		text := ledger.Render(&s, 8000)
		has(t, part(text, "Goal"), "  → changed retry.go\n  → the agent at m4: "+tc.want+"\n")
		lacks(t, part(text, "Goal"), "No response requested", "secretName", "example.com/docs")
		back, ok := ledger.ReadBack(text)
		if again := ledger.Render(&back, 8000); !ok || !strings.Contains(again, "the agent at m4: "+tc.want+"\n") {
			t.Errorf("%s: read back as %q", name, again)
		}
	}
}

// TestFewWordsAnswer: a request of a few words is shown with what it answers, a question or not.
func TestFewWordsAnswer(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		"There are two ways.\nI would move the check to the queue.": "the agent had said at m4: “I would move the check to the queue.”",
		"There are two ways. Shall I move the check?":               "the agent had asked at m4: “Shall I move the check?”",
	} {
		text := (&story{}).user("look at the check").read("/w/check.go").agent(before).user("yes").render(8000)
		has(t, part(text, "Goal"), "- Latest request, m5: “yes”\n  → "+want+"\n")
		back, _ := ledger.ReadBack(text)
		has(t, ledger.Render(&back, 8000), want)
	}
	lacks(t, (&story{}).user("look at the check").read("/w/check.go").agent("There are two ways.").user("now describe the queue in the documents").render(8000), "the agent had said")
}

// TestStepsThatRepeat: calls that follow each other and read the same take one line.
func TestStepsThatRepeat(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("go").edit("/w/a.go").edit("/w/a.go").edit("/w/a.go").edit("/w/b.go").edit("/w/a.go")
	want := "- m6 Edit /w/a.go, 3 times\n- m8 Edit /w/b.go\n- m10 Edit /w/a.go"
	if got := part(s.render(8000), "Last steps"); strings.TrimSpace(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPassedByAllTests names the command that proves that a failure is gone.
func TestPassedByAllTests(t *testing.T) {
	t.Parallel()
	text := (&story{}).user("go").failed("Bash", map[string]any{"command": "go test ./pkg -run TestA"}, "Exit code 1\n--- FAIL: TestA").edit("/w/a.go").bash("make test && make lint", "").render(20000)
	want := "`go test ./pkg -run TestA`: “--- FAIL: TestA”\n  → `make test && make lint` passed at m7 after changes to a.go"
	has(t, part(text, "Errors that were fixed"), want)
	back, _ := ledger.ReadBack(text)
	if e := back.Work.Errors; len(e) != 1 || e[0].PassedBy != "make test && make lint" || e[0].Passed != 7 || len(e[0].Edits) != 1 {
		t.Errorf("read back as %+v", e)
	}
}

// TestEndOfALongRequest: the end of a request between the first and the latest is shown, too, and is read back.
func TestEndOfALongRequest(t *testing.T) {
	t.Parallel()
	text := (&story{}).user("first").edit("/w/a.go").user("This is the log of the service:\n" + strings.Repeat("12:00 INFO nothing\n", 100) + "Find out why it stops.").edit("/w/b.go").user("thanks").edit("/w/c.go").render(12000)
	want := "\n  → at its end: “Find out why it stops.”"
	has(t, part(text, "Requests and what became of them"), want)
	lacks(t, text, "kept in mind")
	back, _ := ledger.ReadBack(text)
	has(t, ledger.Render(&back, 12000), want)
}
