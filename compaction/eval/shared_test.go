package eval_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// shared is the folder of real inputs, if it is there.
func shared(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "data")
	if _, err := os.Stat(filepath.Join(dir, "probes")); err != nil {
		testskip.Skip(t, "no scores on real inputs: %v; set MORTISE_SHARED to the folder that holds data/", err)
	}
	return dir
}

// read reads recordings.
func read(t *testing.T, pattern string) []eval.Recording {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var out []eval.Recording
	for _, name := range files {
		f, err := transcript.Open(name, transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := eval.Recording{Name: filepath.Base(name)}
		for i := range f.Conversations {
			r.Conversations = append(r.Conversations, eval.Conversation{ID: f.Conversations[i].ID, Messages: f.Conversations[i].Messages()})
		}
		out = append(out, r)
	}
	return out
}

// TestBaselinesOnRealInputs holds the scores of the best baselines to the figures
// that they were measured with when the goals were set: 0.53 and 0.25 on BFCL
// memory, 0.90 and 0.52 on QMSum. The rules here were written anew, so they need
// not be the same to the last digit, but must not be weaker. Grounding was within
// 200 bytes then; within the unit it is 0.02 less.
func TestBaselinesOnRealInputs(t *testing.T) {
	t.Parallel()
	data := shared(t)
	for _, s := range []struct {
		name, probes, transcripts string
		least                     eval.Score
		stated                    int
	}{
		{"BFCL memory", "bfcl-memory", "bfcl-memory/*.json", eval.Score{Literal: 0.52, Grounded: 0.23}, 48},
		{"QMSum", "qmsum", "qmsum/*.jsonl", eval.Score{Literal: 0.90, Grounded: 0.48}, 60},
		{"tau-bench", "tau-bench", "tau-bench/*.json", eval.Score{Literal: 0.85, Grounded: 0.5}, 209},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			probes, err := eval.OpenProbes(filepath.Join(data, "probes", s.probes+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			set, err := eval.NewSet(s.name, read(t, filepath.Join(data, "transcripts", s.transcripts)), probes)
			if err != nil {
				t.Fatal(err)
			}
			var best eval.Score
			for _, c := range measure(t, eval.Config{Sets: []eval.Set{set}, Contenders: eval.Baselines()}).Cells {
				best.Literal, best.Grounded = math.Max(best.Literal, c.Literal), math.Max(best.Grounded, c.Grounded)
				if c.Probes != s.stated || c.Failures > 0 || c.Overruns > 0 {
					t.Errorf("%s: %d probes, %d failures, %d overruns", c.Contender, c.Probes, c.Failures, c.Overruns)
				}
				if c.Contender == "index" && c.Grounded > 0.45 {
					t.Errorf("a bag of identifiers is grounded: %v", c.Grounded)
				}
			}
			if best.Literal < s.least.Literal || best.Grounded < s.least.Grounded {
				t.Errorf("the best baselines reach %+v, less than %+v", best, s.least)
			}
		})
	}
}
