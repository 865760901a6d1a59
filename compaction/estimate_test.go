package compaction_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/transcript"
)

func TestEstimateMessage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		m    abi.Message
		want int64
	}{
		{"empty", abi.Message{}, 4},
		{"one word", assistant("", "word"), 5},
		{"two short words", assistant("", "two words"), 6},
		{"a long word", assistant("", strings.Repeat("a", 44)), 4 + 8},
		{"digits", assistant("", "1234"), 4 + 2},
		{"blank lines", assistant("", "a\n\n\n\nb"), 4 + 3},
		{"another script", assistant("", "日本語です"), 4 + 4},
		{"bytes that are no characters", assistant("", strings.Repeat("\x80", 100)), 4 + 80},
		{"thinking", abi.Message{Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "word"}}}, 5},
		{"an image", abi.Message{Content: []abi.ContentBlock{{Type: abi.BlockImage}}}, 4 + 1200},
		{"a call", abi.Message{ToolCalls: []abi.ToolCall{{Name: "shell", Arguments: map[string]any{"cmd": "ls"}}}}, 4 + 4 + 1 + 6},
		{"arguments that are no JSON", abi.Message{ToolCalls: []abi.ToolCall{{Name: "shell", Arguments: "ls"}}}, 4 + 4 + 1 + 1},
		{"arguments that cannot be written", abi.Message{ToolCalls: []abi.ToolCall{{Name: "shell", Arguments: math.NaN()}}}, 4 + 4 + 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := compaction.EstimateMessage(&tc.m); got != tc.want {
				t.Errorf("%d tokens, want %d", got, tc.want)
			}
		})
	}
}

func TestEstimateIsTheSum(t *testing.T) {
	t.Parallel()
	log := rounds(5)
	var sum int64
	for i := range log {
		sum += compaction.EstimateMessage(&log[i])
	}
	if got := compaction.Estimate(log); got != sum || compaction.Estimate(nil) != 0 {
		t.Errorf("%d tokens, want %d", got, sum)
	}
}

// The sum over all calls of a run must be near what was billed for it. The models
// of these runs count about a fifth more tokens than o200k does: the first bill
// corrects that.
func TestEstimateAgainstBills(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	files, err := filepath.Glob(filepath.Join(sharedData(t), "transcripts", "mini-swe-agent", "*", "*.traj.json"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d recordings, want 6 (%v)", len(files), err)
	}
	for _, path := range files {
		f, err := transcript.Open(path, transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := newDesk().at(t, says("x"), nil)
		var billed, raw, calibrated int64
		var log []abi.Message
		for _, e := range f.Conversations[0].Entries {
			if e.Usage != nil && e.Usage.PromptTokens > 0 {
				billed += e.Usage.PromptTokens
				raw += compaction.Estimate(log)
				calibrated += c.Tokens(thread, log)
				c.Calibrate(thread, e.Usage.PromptTokens, log)
			}
			log = append(log, e.Message)
		}
		if billed == 0 {
			t.Fatalf("%s: nothing was billed", filepath.Base(path))
		}
		before, after := float64(raw)/float64(billed), float64(calibrated)/float64(billed)
		t.Logf("%-32s estimated/billed %.3f, calibrated %.3f (%d billed)", filepath.Base(path), before, after, billed)
		if before < 0.78 || before > 1.1 {
			t.Errorf("%s: the estimate is %.3f of the bill, want 0.78 to 1.10", filepath.Base(path), before)
		}
		if after < 0.95 || after > 1.05 {
			t.Errorf("%s: calibrated it is %.3f of the bill, want 0.95 to 1.05", filepath.Base(path), after)
		}
	}
}

func TestCalibrate(t *testing.T) {
	t.Parallel()
	log := []abi.Message{user("u", words(2000))}
	raw := compaction.Estimate(log)
	for _, tc := range []struct {
		name  string
		bills []int64
		want  float64
	}{
		{"none", nil, 1},
		{"nothing billed", []int64{0, -5, math.MinInt64}, 1},
		{"as billed", []int64{raw * 5 / 4}, 1.25},
		{"not above the bound", []int64{math.MaxInt64}, 1.6},
		{"not below the bound", []int64{1}, 0.7},
		{"one odd bill counts a quarter", []int64{raw, raw * 8 / 5}, 1.15},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newDesk().at(t, says("x"), nil)
			for _, bill := range tc.bills {
				c.Calibrate(thread, bill, log)
			}
			if got := float64(c.Tokens(thread, log)) / float64(raw); math.Abs(got-tc.want) > 0.01 {
				t.Errorf("scaled by %.3f, want %.3f", got, tc.want)
			}
		})
	}
	t.Run("a small request says nothing", func(t *testing.T) {
		t.Parallel()
		c := newDesk().at(t, says("x"), nil)
		c.Calibrate(thread, 5000, []abi.Message{user("u", "hello")})
		if got := c.Tokens(thread, log); got != raw {
			t.Errorf("%d tokens, want %d", got, raw)
		}
	})
}

// sharedData is the folder of real recordings. It is no part of the repository,
// so a test that reads it is skipped where it is missing.
func sharedData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if filepath.Dir(root) == root {
				t.Fatal("no go.mod above the test")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared")
	}
	dir = filepath.Join(dir, "data")
	if _, err := os.Stat(dir); err != nil {
		testskip.Skip(t, "the real recordings are missing, data/ of the shared folder (set MORTISE_SHARED): %v", err)
	}
	return dir
}
