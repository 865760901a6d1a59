package extract_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/extract"
)

func sample() []mortise.Message {
	list := []mortise.Message{
		say(mortise.RoleUser, "Please add retries to the upload client. You must never log the token. The bucket is called heron-7431."),
		say(mortise.RoleAssistant, "I decided to use exponential backoff rather than a fixed delay. Let me read the client first."),
		say(mortise.RoleTool, "package upload\nclient.go:14: Error: undefined: backoffLimit\n"),
		say(mortise.RoleUser, "The deadline is 17 March, and Priya reviews it. What is left?"),
		say(mortise.RoleAssistant, "I fixed the build. The next step is a test for the limit of 9 attempts."),
	}
	list[1].ToolCalls = []mortise.ToolCall{
		{ID: "1", Name: "read", Arguments: map[string]any{"path": "upload/client.go"}},
		{ID: "2", Name: "bash", Arguments: map[string]any{"command": "sed -i s/a/b/ upload/retry.go && go test ./upload"}},
		{ID: "3", Name: "ticket", Arguments: map[string]any{"ticket_id": "OPS-3391"}},
	}
	for i := range list {
		list[i].ID = "m" + strconv.Itoa(i)
	}
	return list
}

func summarize(t *testing.T, req *mortise.SummarizeRequest) string {
	t.Helper()
	s, err := extract.Summarize(req)
	if err != nil {
		t.Fatal(err)
	}
	if limit := int(float64(req.BudgetTokens) * 3.6); len(s.Text) > limit {
		t.Fatalf("%d bytes of %d", len(s.Text), limit)
	}
	return s.Text
}

func TestSections(t *testing.T) {
	t.Parallel()
	req := &mortise.SummarizeRequest{Messages: sample(), BudgetTokens: 600, LiveTasks: []string{"bg_1 (index build)"}}
	text := summarize(t, req)
	for heading, want := range map[string]string{
		"## Goal":                         "add retries to the upload client",
		"## Constraints and instructions": "must never log the token",
		"## Decisions":                    "exponential backoff",
		"## Errors and fixes":             "undefined: backoffLimit",
		"## Files read":                   "upload/client.go",
		"## Files modified":               "upload/retry.go",
		"## Commands":                     "go test ./upload",
		"## Identifiers and values":       "OPS-3391",
		"## Open items":                   "bg_1 (index build) is still running",
	} {
		_, rest, ok := strings.Cut(text, heading+"\n")
		body, _, _ := strings.Cut(rest, "\n## ")
		if !ok || !strings.Contains(body, want) {
			t.Errorf("%s lacks %q in\n%s", heading, want, text)
		}
	}
	for _, fact := range []string{"heron-7431", "17 March", "Priya", "9 attempts"} {
		if !strings.Contains(text, fact) {
			t.Errorf("lost %q:\n%s", fact, text)
		}
	}
}

func TestDeterministicAndLabelled(t *testing.T) {
	t.Parallel()
	a, errA := extract.Summarize(&mortise.SummarizeRequest{Messages: sample(), BudgetTokens: 90})
	b, errB := extract.Summarize(&mortise.SummarizeRequest{Messages: sample(), BudgetTokens: 90})
	if errA != nil || errB != nil || !reflect.DeepEqual(a, b) || a.FromID != "m0" || a.ToID != "m4" || a.Policy != "extract" {
		t.Errorf("%+v %v, %+v %v", a, errA, b, errB)
	}
}

// TestChain summarizes over and over with room enough: nothing may get lost, and
// the sections must stay what they are.
func TestChain(t *testing.T) {
	t.Parallel()
	text := summarize(t, &mortise.SummarizeRequest{Messages: sample(), BudgetTokens: 1200})
	for i := range 8 {
		text = summarize(t, &mortise.SummarizeRequest{
			Messages:        []mortise.Message{say(mortise.RoleUser, "Round "+strconv.Itoa(i)+" uses shard-"+strconv.Itoa(4000+i)+" in Lisbon.")},
			PreviousSummary: &text, BudgetTokens: 1200,
		})
	}
	for _, fact := range []string{"heron-7431", "17 March", "Priya", "OPS-3391", "shard-4000", "shard-7", "must never log", "upload/retry.go"} {
		if fact == "shard-7" {
			fact = "shard-4007"
		}
		if !strings.Contains(text, fact) {
			t.Errorf("lost %q:\n%s", fact, text)
		}
	}
	if n := strings.Count(text, "## Goal"); n != 1 {
		t.Errorf("%d goals:\n%s", n, text)
	}
}

func TestLeftOutIsCounted(t *testing.T) {
	t.Parallel()
	old := "## Key passages\n" + strings.Repeat("- [user] the codeword of ward 12 is marmot\n", 1)
	for i := range 200 {
		old += "- [user] ward " + strconv.Itoa(i) + " has the codeword beta" + strconv.Itoa(i*7) + " on its door\n"
	}
	text := summarize(t, &mortise.SummarizeRequest{Messages: sample(), PreviousSummary: &old, BudgetTokens: 300})
	if !strings.Contains(text, "(left out for space: ") {
		t.Errorf("no count:\n%s", text)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	if _, err := extract.Summarize(&mortise.SummarizeRequest{Messages: sample(), BudgetTokens: 3}); !errors.Is(err, extract.ErrNoBudget) {
		t.Errorf("got %v", err)
	}
	if _, err := extract.Summarize(&mortise.SummarizeRequest{BudgetTokens: 300}); !errors.Is(err, extract.ErrNoContent) {
		t.Errorf("got %v", err)
	}
}

func FuzzSummarize(f *testing.F) {
	f.Add("Hello. My name is Ann — 35, from Oslo; path/a.go", "## Goal\n- x\n- [user] y | z\n", int64(60))
	f.Add("{\"a\": [1, \"b\\\"\"", "", int64(12))
	f.Fuzz(func(t *testing.T, text, previous string, budget int64) {
		if budget > 1<<16 {
			budget %= 1 << 16
		}
		req := &mortise.SummarizeRequest{BudgetTokens: budget, PreviousSummary: &previous, Focus: text}
		for _, r := range []mortise.Role{mortise.RoleUser, mortise.RoleAssistant, mortise.RoleTool} {
			m := say(r, text)
			m.ToolCalls = []mortise.ToolCall{{Name: "bash", Arguments: map[string]any{"command": text, "path": text, "x": text}}}
			req.Messages = append(req.Messages, m)
		}
		s, err := extract.Summarize(req)
		if err == nil && len(s.Text) > int(float64(budget)*3.6) {
			t.Errorf("%d bytes for %d tokens", len(s.Text), budget)
		}
	})
}

// TestLong bounds the work on hostile and on long input.
func TestLong(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"a", "a ", "A. ", ", and ", "x_1 ", "—", "\n", "word, and another word that goes on; "} {
		list := make([]mortise.Message, 0, 40)
		for range 40 {
			list = append(list, say(mortise.RoleUser, strings.Repeat(part, 40<<10/len(part))))
		}
		start := time.Now()
		_, err := extract.Summarize(&mortise.SummarizeRequest{Messages: list, BudgetTokens: 4000})
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%q: %s", part, d)
		}
		if err != nil && !errors.Is(err, extract.ErrNoContent) {
			t.Error(err)
		}
	}
}

func BenchmarkSummarize(b *testing.B) {
	talks := loadSWE(b, sharedData(b))
	list := talks["sphinx-doc__sphinx-9258"]
	if len(list) == 0 {
		b.Fatal("no conversation in " + filepath.Join("transcripts", "mini-swe-agent"))
	}
	for b.Loop() {
		if _, err := extract.Summarize(&mortise.SummarizeRequest{Messages: list, BudgetTokens: 4000}); err != nil {
			b.Fatal(err)
		}
	}
}
