package compaction_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// coding is a session in which claim.go is changed and report.go read.
func coding() []abi.Message {
	log := []abi.Message{user("q", "Please let the claim expire after 4500 seconds.")}
	call := func(id, tool, path, out string) {
		m := assistant("m"+id, "")
		m.ToolCalls = []abi.ToolCall{{ID: id, Name: tool, Arguments: map[string]any{"file_path": path, "old_string": "a", "new_string": "b"}}}
		log = append(log, m, result("r"+id, id, out+words(500)))
	}
	call("c1", "Read", "/w/report.go", "package report ")
	call("c2", "Edit", "/w/claim.go", "The file /w/claim.go has been updated. ")
	call("c3", "Read", "/w/clock.go", "package clock ")
	return append(log, assistant("end", "The expiry works now."), user("next", "Good, now document it."))
}

// meeting is a conversation without tools.
func meeting() []abi.Message {
	var log []abi.Message
	for i, said := range []string{"Maria prefers the morning train to Hamburg", "The budget of the Lisbon workshop is 7300 euros", "Joachim decided against the hotel near the harbour", "We promised Beatrice the slides before Thursday"} {
		log = append(log, user(fmt.Sprint("u", i), said+". "+words(300)), assistant(fmt.Sprint("a", i), "Noted: "+said+"."))
	}
	return append(log, user("end", "What is left?"))
}

// compacted is what becomes of a log.
func compacted(t *testing.T, log []abi.Message, s compaction.Summarizer, survival float64) (compaction.Event, string) {
	t.Helper()
	d := newDesk()
	c := d.at(t, s, func(cfg *compaction.Config) { cfg.Policy.MinSurvival = survival })
	if !c.Consider(t.Context(), thread, log) {
		t.Fatalf("not started: %+v", d.last(t))
	}
	consume(t, c, log, d.run())
	return d.last(t), c.View(thread, log)[0].Text()
}

// TestGate: a summary that is worse than the ledger's own text is replaced by it, in each kind of session; one that keeps
// what the session needs is not.
func TestGate(t *testing.T) {
	t.Parallel()
	const good = "Wanted: let the claim expire after 4500 seconds. Changed /w/claim.go. Next: document it."
	const dialogue = "Maria prefers the morning train to Hamburg. The budget of the Lisbon workshop is 7300 euros. Joachim decided against the hotel near the harbour. We promised Beatrice the slides before Thursday."
	const idle = "All went well, and the work continues as it was planned."
	for name, tc := range map[string]struct {
		log      []abi.Message
		text     string
		survival float64
		replaced string
	}{
		"a good one":            {coding(), good, 0, ""},
		"nothing is kept":       {coding(), idle, 0, "a coding session"},
		"no file is kept":       {coding(), strings.ReplaceAll(good, "/w/claim.go", "a file"), 0, "a coding session"},
		"switched off":          {coding(), idle, -1, ""},
		"dialogue":              {meeting(), dialogue, 0, ""},
		"dialogue, nothing":     {meeting(), idle, 0, "a dialogue session"},
		"dialogue, one of four": {meeting(), dialogue[:42], 0, "a dialogue session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, view := compacted(t, tc.log, says(tc.text), tc.survival)
			replaced := e.Policy == "ledger" && strings.Contains(view, "State after message")
			if e.Kind != compaction.EventSwapped || replaced != (tc.replaced != "") || !strings.Contains(e.Reason, tc.replaced) || !replaced && !strings.Contains(view, tc.text) {
				t.Errorf("told %s by %s: %s\n%s", e.Kind, e.Policy, e.Reason, view)
			}
		})
	}
}

// TestGateKeepsTheAnswer: a summary that is replaced stays as the summarizer returned it, for a recorder of answers.
func TestGateKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	answer := &abi.Summary{Text: "They talked about this and that."}
	s := scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { return answer, nil })
	if e, _ := compacted(t, coding(), s, 0); e.Policy != "ledger" || answer.Text != "They talked about this and that." {
		t.Errorf("by %s: %q", e.Policy, answer.Text)
	}
}

// TestVerified: what a model wrote is held against the log before it is swapped in, if the policy says so.
func TestVerified(t *testing.T) {
	t.Parallel()
	const text = "## Goal\n- Let the claim expire after 4500 seconds.\n## Files modified\n- /w/report.go\n## Next\n- Document it."
	for _, unverified := range []bool{true, false} {
		s := scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
			return &abi.Summary{Text: text, Unverified: unverified}, nil
		})
		e, view := compacted(t, coding(), s, -1)
		listed, _, _ := strings.Cut(view, "<read-files") // what the host lists in any case
		if wrong := strings.Contains(listed, "report.go\n## Next"); e.Kind != compaction.EventSwapped || wrong == unverified {
			t.Errorf("%s:\n%s", e.Kind, view)
		}
		if added := strings.Contains(listed, "- changed /w/claim.go (m4)"); added != unverified {
			t.Errorf("unverified %v:\n%s", unverified, view)
		}
		if noted := strings.Contains(e.Reason, "1 lines that the log does not bear out"); noted != unverified {
			t.Errorf("noted %q", e.Reason)
		}
		compactedNow, err := compaction.Compact(t.Context(), coding(), compaction.Options{Summarizer: s, Policy: tight()})
		if err != nil || strings.Contains(compactedNow.Messages[0].Text(), "- /w/report.go\n## Next") == unverified {
			t.Errorf("Compact: %+v, %v", compactedNow, err)
		}
	}
}
