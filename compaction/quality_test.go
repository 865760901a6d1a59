package compaction_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
)

func TestScore(t *testing.T) {
	t.Parallel()
	source := []abi.Message{
		user("u", "open internal/cli/run.go and cmd/mortise/main.go, see https://example.org/a."),
		assistant("a", "internal/cli/run.go calls runStep; cmd/mortise/main.go sets max_tokens to 12,800 and 12,800"),
		{ID: "m", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{Name: "shell", Arguments: map[string]any{"cmd": "grep runStep max_tokens"}}}},
		result("r", "c", "run.go:7: Error: undefined runner\nonce_only and once/only.go and 99.99"),
	}
	s := compaction.NewScorer()
	for _, tc := range []struct {
		name    string
		summary string
		kept    [5]int // paths, URLs, identifiers, numbers, errors
	}{
		{"nothing", "all went well", [5]int{}},
		{"a path", "see internal/cli/run.go", [5]int{1, 0, 0, 0, 0}},
		{"a part of a path", "see run.go", [5]int{}},
		{"a URL without its full stop", "https://example.org/a", [5]int{0, 1, 0, 0, 0}},
		{"identifiers", "runStep, max_tokens", [5]int{0, 0, 2, 0, 0}},
		{"in another case", "RUNSTEP", [5]int{}},
		{"a number", "12,800", [5]int{0, 0, 0, 1, 0}},
		{"an error", "it said run.go:7: Error: undefined runner", [5]int{0, 0, 0, 0, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q := s.Score(source, nil, tc.summary)
			all := [5]compaction.Survival{q.Paths, q.URLs, q.Identifiers, q.Numbers, q.Errors}
			total, weights := 0.0, [5]float64{2, 1, 1, 0.5, 2}
			for i, want := range [5]int{2, 1, 2, 1, 1} {
				if all[i].Total != want || all[i].Kept != tc.kept[i] {
					t.Errorf("kind %d: %d of %d, want %d of %d", i, all[i].Kept, all[i].Total, tc.kept[i], want)
				}
				total += weights[i] * float64(all[i].Kept) / float64(want)
			}
			if math.Abs(q.Overall-total/6.5) > 1e-9 {
				t.Errorf("overall %.3f, want %.3f", q.Overall, total/6.5)
			}
		})
	}
	t.Run("the summary before counts as source", func(t *testing.T) {
		t.Parallel()
		previous := "https://example.org/before"
		if q := s.Score(source, &previous, "https://example.org/a"); q.URLs.Total != 2 || q.URLs.Kept != 1 {
			t.Errorf("%+v", q.URLs)
		}
	})
	t.Run("nothing to keep", func(t *testing.T) {
		t.Parallel()
		if q := s.Score([]abi.Message{user("u", "hi")}, nil, ""); q.Overall != 1 || q.Savings != 1 {
			t.Errorf("%+v", q)
		}
		if q := s.Score(nil, nil, "text"); q.Overall != 1 || q.Savings != 0 {
			t.Errorf("%+v", q)
		}
	})
	t.Run("savings", func(t *testing.T) {
		t.Parallel()
		long := []abi.Message{user("u", words(1000))}
		if q := s.Score(long, nil, words(250)); math.Abs(q.Savings-0.75) > 0.02 {
			t.Errorf("saves %.3f, want 0.75", q.Savings)
		}
		if q := s.Score(long, nil, words(3000)); q.Savings > -1.9 {
			t.Errorf("saves %.3f, want about -2", q.Savings)
		}
	})
}

// Arbitrary input must neither panic nor take long. The time is generous: it
// is to find what is not linear.
func TestScoreHostile(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	s := compaction.NewScorer()
	for name, piece := range map[string]string{
		"slashes": "/", "dots": "../", "no characters": "\x80\xff", "one path": "a/", "underscores": "a_", "digits": "1,",
		"errors": "Error: ", "lines": "\n", "mixed case": "aB",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Repeat(piece, (100<<10)/len(piece))
			start := time.Now()
			q := s.Score([]abi.Message{user("u", text), user("v", text), user("w", text)}, &text, text[:1000])
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s", took)
			}
			if math.IsNaN(q.Overall) || q.Overall < 0 || q.Overall > 1 || math.IsNaN(q.Savings) || q.Savings > 1 {
				t.Errorf("%+v", q)
			}
			for _, k := range []compaction.Survival{q.Paths, q.URLs, q.Identifiers, q.Numbers, q.Errors} {
				if k.Total > 400 || k.Kept > k.Total || k.Kept < 0 {
					t.Errorf("%+v", k)
				}
			}
		})
	}
}

func TestScoreIsBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for range 2 {
		for i := range 1000 {
			b.WriteString("https://example.org/" + fmt.Sprint(i) + " ")
		}
	}
	if q := compaction.NewScorer().Score([]abi.Message{user("u", b.String())}, nil, ""); q.URLs.Total != 400 {
		t.Errorf("%d URLs are compared, want 400", q.URLs.Total)
	}
}
