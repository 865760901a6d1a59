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
	if *misses {
		for i := range sets {
			printMisses(t, &sets[i])
		}
	}
	if *dump == "" {
		return
	}
	for i := range sets {
		for k, c := range sets[i].Conversations {
			c.Messages = body(c.Messages)
			l := ledger.New()
			l.Add(c.Messages...)
			s := l.State()
			whole := eval.Flatten(c.Messages)
			for _, part := range []int{20, 10, 5} {
				text := fmt.Sprintf("%s: %d of %d\n\n%s", c.ID, len(whole)/part, len(whole), ledger.Render(&s, len(whole)/part))
				if err := os.WriteFile(filepath.Join(*dump, fmt.Sprintf("%s-%02d-%d.md", sets[i].Name, k, 100/part)), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// printMisses prints, for each size, the facts that the baseline with the best literal score keeps and the ledger does not, and the
// number of those that it is the other way round with.
func printMisses(t *testing.T, set *eval.Set) {
	t.Helper()
	for _, share := range []float64{.05, .1, .2} {
		kept := map[string]map[string]bool{} // of contenders
		var facts []string
		for _, c := range append(eval.Baselines(), eval.Contender{Name: "ledger", Summarizer: summarizer{}, BytesPerToken: 3.6}) {
			kept[c.Name], facts = keptFacts(t, set, c, share)
		}
		best := ""
		for _, c := range eval.Baselines() {
			if best == "" || len(kept[c.Name]) > len(kept[best]) {
				best = c.Name
			}
		}
		ahead, lines := 0, ""
		for _, f := range facts {
			switch mine, theirs := kept["ledger"][f], kept[best][f]; {
			case theirs && !mine:
				lines += "    " + f + "\n"
			case mine && !theirs:
				ahead++
			case !mine && !theirs:
				lines += "    (neither) " + f + "\n"
			}
		}
		fmt.Printf("%s %g: %s keeps %d, the ledger %d of %d; the ledger alone %d. It lacks\n%s", set.Name, share, best, len(kept[best]), len(kept["ledger"]), len(facts), ahead, lines)
	}
}

// keptFacts are the facts of a set that a contender keeps, and all of them; a key counts by itself.
func keptFacts(t *testing.T, set *eval.Set, c eval.Contender, share float64) (kept map[string]bool, all []string) {
	t.Helper()
	kept = map[string]bool{}
	for _, talk := range set.Conversations {
		talk.Messages = body(talk.Messages)
		per := c.BytesPerToken
		if per == 0 {
			per = 3.6
		}
		out, err := c.Summarizer.Summarize(t.Context(), &abi.SummarizeRequest{Messages: talk.Messages, BudgetTokens: int64(share * float64(len(eval.Flatten(talk.Messages))) / per)})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range set.Probes {
			if p.Conversation != talk.ID {
				continue
			}
			list := []eval.Probe{p}
			if len(p.Keys) > 0 {
				list = nil
				for _, k := range p.Keys {
					list = append(list, eval.Probe{ID: p.ID, Question: p.Question, Keys: []string{k}})
				}
			}
			for _, q := range list {
				score, ok := eval.Grade(q, talk, out.Text)
				if !ok {
					continue
				}
				name := fmt.Sprintf("%s %q %s", q.ID, append(q.Keys, q.Answers...), q.Question)
				all = append(all, name)
				if score.Literal > 0 {
					kept[name] = true
				}
			}
		}
	}
	return kept, all
}

// body is a conversation without the instructions in front, which are never summarized.
func body(list []abi.Message) []abi.Message {
	for len(list) > 0 && list[0].Role == abi.RoleSystem {
		list = list[1:]
	}
	return list
}
