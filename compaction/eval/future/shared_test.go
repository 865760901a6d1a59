package future_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval/future"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// windows reads the real sessions with compactions.
func windows(t *testing.T) []future.Window {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(dir, "data", "transcripts", "claude-code-compactions", "*.jsonl"))
	if err != nil || len(files) == 0 {
		testskip.Skip(t, "no real compactions in data/transcripts/claude-code-compactions; set MORTISE_SHARED to the folder that holds data/ (%v)", err)
	}
	recorded.once.Do(func() { recorded.list, recorded.err = readWindows(files) })
	if recorded.err != nil {
		t.Fatal(recorded.err)
	}
	return recorded.list
}

// recorded are the windows of the real sessions, which tests read only.
var recorded struct {
	once sync.Once
	list []future.Window
	err  error
}

func readWindows(files []string) ([]future.Window, error) {
	var out []future.Window
	for _, path := range files {
		f, err := transcript.Open(path, transcript.Options{})
		if err != nil {
			return nil, err
		}
		c := &f.Conversations[0]
		s := future.Session{Name: filepath.Base(path), Messages: c.Messages(), Partial: c.Partial}
		for i := range c.Entries {
			if c.Entries[i].Status == abi.ToolError {
				s.Messages[i].Metadata = map[string]any{abi.MetadataIsError: true}
			}
		}
		for _, k := range c.Compactions {
			s.Compactions = append(s.Compactions, future.Compaction{At: k.At, Summary: k.Summary, Continued: k.Continued})
		}
		w, ok := future.First(s)
		if !ok {
			return nil, fmt.Errorf("%s: no window", path)
		}
		out = append(out, w)
	}
	return out, nil
}

// TestBaselinesOnRealCompactions holds the scores to those that were measured by
// other code when the measure was set, on 14 windows with 291 facts: vendor .34/.63,
// last n .39/.45, index .68/.72, weighted .78/.80, half and half .72/.77. The rules
// for what is a fact were written anew, so that a window and some facts differ.
func TestBaselinesOnRealCompactions(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	report, err := future.Run(t.Context(), future.Config{Windows: windows(t), Contenders: future.Baselines(), Sizes: []future.Size{{}}, Chains: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Windows) != 15 || report.Rows[0].Facts < 280 || report.Rows[0].Facts > 300 || report.Rows[0].Whole != 13 {
		t.Errorf("%d windows, %d facts, %d whole", len(report.Windows), report.Rows[0].Facts, report.Rows[0].Whole)
	}
	for name, want := range map[string][2]float64{
		future.Vendor: {.34, .63}, "last-n": {.39, .45}, "index": {.68, .72}, "index-own": {.78, .80}, "half-half": {.72, .77},
	} {
		row, ok := report.Find(name, future.Size{}, 1)
		if !ok || math.Abs(row.Strict.Value-want[0]) > .055 || math.Abs(row.Lenient.Value-want[1]) > .055 {
			t.Errorf("%s: %.2f/%.2f, measured before as %.2f/%.2f", name, row.Strict.Value, row.Lenient.Value, want[0], want[1])
		}
		if in := row.Strict.Interval; in == nil || in.Low > want[0] || in.High < want[0] {
			t.Errorf("%s: %.2f is not within [%.2f, %.2f]", name, want[0], in.Low, in.High)
		}
	}
	vendor, _ := report.Find(future.Vendor, future.Size{}, 1)
	if named := float64(vendor.Modified.Named) / float64(vendor.Modified.Touched); named < .9 {
		t.Errorf("the vendor names %.2f of the changed files, measured before as .93", named)
	}
	if wrong := vendor.FalseFiles.Wrong + vendor.FalseWords.Wrong; wrong == 0 || wrong > 12 {
		t.Errorf("%d statements of the vendor are false: %q", wrong, vendor.Examples)
	}
}
