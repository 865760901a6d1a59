package ledger_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/llm/transcript"
)

var (
	dialogues = flag.Bool("dialogues", false, "print what renderings of dialogues keep")
	baselines = flag.Bool("baselines", false, "with the baselines")
)

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

// halves are a set as a whole, and every other conversation of it.
func halves(t *testing.T, name string, recordings []eval.Recording, probes []eval.Probe) []eval.Set {
	t.Helper()
	whole, err := eval.NewSet(name, recordings, probes)
	if err != nil {
		t.Fatal(err)
	}
	dev, held := whole, whole
	dev.Name, held.Name = name+" dev", name+" held"
	dev.Conversations, held.Conversations, dev.Probes, held.Probes = nil, nil, nil, nil
	first := map[string]bool{}
	for i, c := range whole.Conversations {
		if i%2 == 0 {
			first[c.ID] = true
			dev.Conversations = append(dev.Conversations, c)
		} else {
			held.Conversations = append(held.Conversations, c)
		}
	}
	for _, p := range whole.Probes {
		if first[p.Conversation] {
			dev.Probes = append(dev.Probes, p)
		} else {
			held.Probes = append(held.Probes, p)
		}
	}
	switch *half {
	case "dev":
		return []eval.Set{dev}
	case "held":
		return []eval.Set{held}
	case "both":
		return []eval.Set{dev, held}
	}
	return []eval.Set{whole}
}

func TestDialogues(t *testing.T) { //nolint:paralleltest // it prints a table
	if !*dialogues {
		t.Skip("a measurement: run with -dialogues")
	}
	data := shared(t)
	var sets []eval.Set
	for _, s := range [][2]string{{"bfcl-memory", "bfcl-memory/*.json"}, {"qmsum", "qmsum/*.jsonl"}, {"tau-bench", "tau-bench/*.json"}} {
		name := s[0]
		probes, err := eval.OpenProbes(filepath.Join(data, "probes", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(data, "transcripts", s[1]))
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
		sets = append(sets, halves(t, name, recordings, probes)...)
	}
	contenders := []eval.Contender{{Name: "ledger", Summarizer: summarizer{}}}
	if *baselines {
		contenders = append(eval.Baselines(), contenders...)
	}
	report, err := eval.Run(t.Context(), eval.Config{
		Sets: sets, Contenders: contenders,
		Budgets: []eval.Budget{{Share: .05}, {Share: .1}, {Share: .2}}, Chains: []int{1, 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Cells {
		if c.Chain == 1 || c.Contender == "ledger" {
			fmt.Printf("%-17s %-5v chain %d %-12s %.3f / %.3f of %d, %d failures, %d overruns\n", c.Set, c.Budget, c.Chain, c.Contender, c.Literal, c.Grounded, c.Probes, c.Failures, c.Overruns)
		}
	}
	if *dump == "" {
		return
	}
	for i := range sets {
		for k, c := range sets[i].Conversations {
			l := ledger.New()
			l.Add(c.Messages...)
			s := l.State()
			whole := eval.Flatten(c.Messages)
			text := fmt.Sprintf("%d of %d\n\n%s", len(whole)/10, len(whole), ledger.Render(&s, len(whole)/10))
			if err := os.WriteFile(filepath.Join(*dump, fmt.Sprintf("%s-%02d.md", sets[i].Name, k)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
