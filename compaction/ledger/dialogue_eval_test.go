package ledger_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/llm/transcript"
)

var dialogues = flag.Bool("dialogues", false, "print what renderings of dialogues keep")

// summarizer renders a ledger of the messages.
type summarizer struct{}

func (z summarizer) Summarize(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	l := ledger.New()
	if r.PreviousSummary != nil {
		if s, ok := ledger.ReadBack(*r.PreviousSummary); ok {
			l = ledger.From(s)
		}
	}
	l.Add(r.Messages...)
	s := l.State()
	return &abi.Summary{Text: ledger.Render(&s, int(float64(r.BudgetTokens)*3.6))}, nil
}

func TestDialogues(t *testing.T) { //nolint:paralleltest // it prints a table
	if !*dialogues {
		t.Skip("a measurement: run with -dialogues")
	}
	data := shared(t)
	var sets []eval.Set
	for name, pattern := range map[string]string{
		"bfcl-memory": "bfcl-memory/*.json", "qmsum": "qmsum/*.jsonl", "tau-bench": "tau-bench/*.json", "mini-swe-agent": "mini-swe-agent/*/*.traj.json",
	} {
		probes, err := eval.OpenProbes(filepath.Join(data, "probes", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(data, "transcripts", pattern))
		if err != nil {
			t.Fatal(err)
		}
		var recordings []eval.Recording
		for _, f := range files {
			file, err := transcript.Open(f, transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := eval.Recording{Name: filepath.Base(f)}
			for i := range file.Conversations {
				r.Conversations = append(r.Conversations, eval.Conversation{ID: file.Conversations[i].ID, Messages: file.Conversations[i].Messages()})
			}
			recordings = append(recordings, r)
		}
		set, err := eval.NewSet(name, recordings, probes)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
		l := ledger.New()
		l.Add(set.Conversations[0].Messages...)
		s := l.State()
		_, chars := needed(set.Conversations[0].Messages, nil)
		fmt.Printf("=== %s, %d of %d characters\n%s\n", name, chars/10, chars, ledger.Render(&s, chars/10))
	}
	report, err := eval.Run(t.Context(), eval.Config{
		Sets: sets, Contenders: append(eval.Baselines(), eval.Contender{Name: "ledger", Summarizer: summarizer{}}),
		Budgets: []eval.Budget{{Share: .05}, {Share: .1}, {Share: .2}}, Chains: []int{1, 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Cells {
		if c.Chain == 1 || c.Contender == "ledger" {
			fmt.Printf("%-15s %-5v chain %d %-12s %.3f / %.3f\n", c.Set, c.Budget, c.Chain, c.Contender, c.Literal, c.Grounded)
		}
	}
}
