package compaction_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// reader remembers what it was given, and answers with what a test says.
type reader struct {
	requests []abi.SummarizeRequest
	answer   func(i int, r *abi.SummarizeRequest) (*abi.Summary, error)
}

func (s *reader) Summarize(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	s.requests = append(s.requests, *r)
	if s.answer != nil {
		return s.answer(len(s.requests), r)
	}
	return &abi.Summary{Text: fmt.Sprintf("summary %d", len(s.requests))}, nil
}

// inParts compacts a log with a summarizer that takes so many tokens at a time.
func inParts(t *testing.T, s *reader, most int64, log []abi.Message) (*desk, *compaction.Compactor) {
	t.Helper()
	d := newDesk()
	c := d.at(t, s, func(cfg *compaction.Config) {
		cfg.Policy.SummarizerTokens, cfg.Policy.SummaryTokens = most, 100
	})
	if !c.Consider(t.Context(), thread, log) {
		t.Fatalf("not started: %+v", d.last(t))
	}
	consume(t, c, log, d.run())
	return d, c
}

// A range that is larger than the summarizer's window is read in parts: each fits,
// each continues from the summary of those before, and nothing is left out.
func TestParts(t *testing.T) {
	t.Parallel()
	s := &reader{}
	log := rounds(100)
	d, c := inParts(t, s, 1000, log)
	if c.Total(thread) != 1 || len(s.requests) < 6 {
		t.Fatalf("%d parts; told %+v", len(s.requests), d.last(t))
	}
	var seen []string
	for i, r := range s.requests {
		if n := compaction.Estimate(r.Messages); n > 900 {
			t.Errorf("part %d has %d tokens", i, n)
		}
		if i > 0 && (r.PreviousSummary == nil || *r.PreviousSummary != fmt.Sprintf("summary %d", i)) {
			t.Errorf("part %d continues from %v", i, r.PreviousSummary)
		}
		if r.Messages[0].Role == abi.RoleTool {
			t.Errorf("part %d begins within a round", i)
		}
		seen = append(seen, ids(r.Messages)...)
	}
	m := c.Markers(thread)[0]
	if want := ids(log[1 : slices.Index(ids(log), m.ToID)+1]); !slices.Equal(seen, want) {
		t.Errorf("read %v, want %v", seen, want)
	}
	if m.Summary != fmt.Sprintf("summary %d", len(s.requests)) {
		t.Errorf("swapped in %q", m.Summary)
	}
}

// A round, a message and the arguments of a call that are larger than a part are cut,
// and every character of them is read.
func TestPartsOfLargeMessages(t *testing.T) {
	t.Parallel()
	number := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "語%d ", i)
		}
		return b.String()
	}
	text := number(3000)
	call := calls("m", "c")
	call.ToolCalls[0].Arguments = map[string]any{"content": number(2000)}
	image := assistant("i", "x")
	image.Content = append(image.Content, abi.ContentBlock{Type: abi.BlockImage})
	log := []abi.Message{assistant("a", text), call, result("r", "c", text), image, user("u", "x")}
	s := &reader{}
	d, c := inParts(t, s, 1500, log)
	if c.Total(thread) != 1 {
		t.Fatalf("told %+v", d.last(t))
	}
	got := make(map[string]string)
	images := 0
	for i, r := range s.requests {
		if n := compaction.Estimate(r.Messages); n > 1400 {
			t.Errorf("part %d has %d tokens", i, n)
		}
		for _, m := range r.Messages {
			got[m.ID] += m.Text()
			for _, b := range m.Content {
				if b.Type == abi.BlockImage {
					images++
				}
			}
		}
	}
	if got["a"] != text || got["r"] != text || images != 1 {
		t.Error("text was lost between the parts")
	}
	if !strings.HasPrefix(got["m"], `[call of shell] {"content":"語0 語1 `) || !strings.HasSuffix(got["m"], `語1999 "}`) {
		t.Errorf("the arguments are %.100q", got["m"])
	}
}

// A part that fails fails the whole: nothing that was not summarized is dropped.
func TestPartsFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer *abi.Summary
		reason string
	}{
		"nothing":     {nil, "part 3 of"},
		"empty":       {&abi.Summary{Text: " "}, "the summary is empty"},
		"lies":        {&abi.Summary{Text: "x", FromID: "q"}, `claims to cover "q"`},
		"its own end": {&abi.Summary{Text: "x", ToID: "rc99"}, `to "rc99"`},
		"it grows":    {&abi.Summary{Text: words(3000)}, "larger than its source"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &reader{answer: func(i int, r *abi.SummarizeRequest) (*abi.Summary, error) {
				if i == 3 {
					return tc.answer, nil
				}
				return &abi.Summary{Text: "x", FromID: r.Messages[0].ID, ToID: r.Messages[len(r.Messages)-1].ID}, nil
			}}
			d, c := inParts(t, s, 1000, rounds(100))
			if e := d.last(t); e.Kind != compaction.EventFailed || !strings.Contains(e.Reason, tc.reason) || c.Total(thread) != 0 || len(s.requests) != 3 {
				t.Errorf("told %s: %s after %d parts", e.Kind, e.Reason, len(s.requests))
			}
		})
	}
}
