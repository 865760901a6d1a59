package eval_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// TestBaselinesStayInTheirBudget runs every rule on awkward text at every small
// budget.
func TestBaselinesStayInTheirBudget(t *testing.T) {
	t.Parallel()
	c := talk("c", "Größe 17 über src/main.go. Noch ein Satz über Äpfel!", "", strings.Repeat("ä", 300), "The end of HAT028 is near. Really.")
	previous := "## Goal\n- über\n"
	for _, b := range eval.Baselines() {
		for budget := range int64(400) {
			s, err := b.Summarizer.Summarize(t.Context(), &abi.SummarizeRequest{Messages: c.Messages, PreviousSummary: &previous, BudgetTokens: budget})
			if err != nil {
				t.Fatalf("%s: %v", b.Name, err)
			}
			if int64(len(s.Text)) > budget || !utf8.ValidString(s.Text) {
				t.Fatalf("%s at %d bytes: %d bytes, %q", b.Name, budget, len(s.Text), s.Text)
			}
		}
		if _, err := b.Summarizer.Summarize(t.Context(), &abi.SummarizeRequest{BudgetTokens: 9}); err == nil {
			t.Errorf("%s makes something of nothing", b.Name)
		}
	}
}

func TestBaselinesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	c := talk("c", "first message is about HAT028 here", "the middle says HAT028 and 4WQ150 too", "the last message ends it all")
	want := map[string]string{
		"last-n":       " message ends it all",
		"first-last":   "first mess\nds it all",
		"heads":        "first\nthe m\nthe l\n",
		"index":        "HAT028 4WQ150",
		"index+last-n": "HAT028\ne ends it all",
		"truncate":     "message ends it all\n",
	}
	for _, b := range eval.Baselines() {
		if b.Name == "centrality" {
			continue // has a test of its own
		}
		s, err := b.Summarizer.Summarize(t.Context(), &abi.SummarizeRequest{Messages: c.Messages, BudgetTokens: 20})
		if err != nil || s.Text != want[b.Name] {
			t.Errorf("%s: %q, want %q (%v)", b.Name, s.Text, want[b.Name], err)
		}
	}
}

func TestCentralityTakesTheCentre(t *testing.T) {
	t.Parallel()
	c := talk("c", "Nothing matters here at present.", "The nightly build fails in the linker. The linker reports a missing symbol.",
		"The nightly build needs that linker symbol.", "Lunch was pleasant yesterday.")
	for _, b := range eval.Baselines() {
		if b.Name != "centrality" {
			continue
		}
		s, err := b.Summarizer.Summarize(t.Context(), &abi.SummarizeRequest{Messages: c.Messages, BudgetTokens: 90})
		if err != nil || !strings.Contains(s.Text, "linker") || strings.Contains(s.Text, "Lunch") {
			t.Errorf("%q, %v", s.Text, err)
		}
	}
}
