package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// ablation leaves one section or signal out of a state.
type ablation struct {
	name string
	out  func(s *abi.Ledger)
}

func names(change func(n *abi.LedgerName)) func(*abi.Ledger) {
	return func(s *abi.Ledger) {
		for i := range s.Names {
			change(&s.Names[i])
		}
	}
}

func ablations() []ablation {
	return []ablation{
		{"nothing", func(*abi.Ledger) {}},
		{"requests between", func(s *abi.Ledger) {
			if r := s.Talk.Requests; len(r) > 2 {
				s.Talk.Requests = []abi.LedgerRequest{r[0], r[len(r)-1]}
			}
		}},
		{"what became of requests", func(s *abi.Ledger) {
			for i := range s.Talk.Requests {
				r := &s.Talk.Requests[i]
				r.Question, r.Files, r.Commits, r.Outcome = nil, nil, nil, nil
			}
		}},
		{"rules", func(s *abi.Ledger) { s.Talk.Rules = nil }},
		{"findings", func(s *abi.Ledger) { s.Talk.Findings = nil }},
		{"tasks, plan, question", func(s *abi.Ledger) { s.Talk.Tasks, s.Talk.Plan, s.Talk.Question = nil, nil, nil }},
		{"last steps", func(s *abi.Ledger) { s.Steps = nil }},
		{"commits", func(s *abi.Ledger) { s.Work.Commits = nil }},
		{"commands", func(s *abi.Ledger) { s.Work.Commands = s.Work.Commands[:min(1, len(s.Work.Commands))] }},
		{"failures", func(s *abi.Ledger) { s.Work.Errors = nil }},
		{"look-ups", func(s *abi.Ledger) { s.Work.Lookups = nil }},
		{"files that were read", func(s *abi.Ledger) {
			s.Work.Files = slices.DeleteFunc(s.Work.Files, func(f abi.LedgerFile) bool { return f.Changes == 0 })
		}},
		{"names that files define", func(s *abi.Ledger) {
			for i := range s.Work.Files {
				s.Work.Files[i].Names = nil
			}
		}},
		{"homes of names", names(func(n *abi.LedgerName) { n.Home = "" })},
		{"names", func(s *abi.Ledger) { s.Names = nil }},
		{"rank: who wrote a name", names(func(n *abi.LedgerName) { n.Call, n.User, n.Agent = false, false, false })},
		{"rank: how often", names(func(n *abi.LedgerName) { n.Count = 1 })},
		{"rank: when last", names(func(n *abi.LedgerName) { n.Last = 0 })},
		{"rank: when last written", names(func(n *abi.LedgerName) { n.Own = 0 })},
		{"rank: how often and when last", names(func(n *abi.LedgerName) { n.Count, n.Last = 1, 0 })},
		{"rank: any age", names(func(n *abi.LedgerName) { n.Own, n.Last = 0, 0 })},
		{"working directory", func(s *abi.Ledger) { s.Folder = "" }},
	}
}

// TestAblations prints what the rendering keeps without a section or a signal, at the vendor's size, 1 % and 10 %:
// go test ./compaction/ledger -run TestAblations -args -future -half dev
func TestAblations(t *testing.T) { //nolint:paralleltest // it prints a table
	if !*future {
		t.Skip("a measurement: run with -future")
	}
	list := windows(t, 8)
	for _, a := range ablations() {
		fmt.Printf("%-30s", a.name)
		for _, share := range []int{0, 1, 10} {
			strict, lenient, all := 0, 0, 0
			for i := range list {
				w := &list[i]
				l := ledger.New()
				l.Add(w.before...)
				s := l.State()
				a.out(&s)
				size := len(w.vendor)
				if share > 0 {
					size = w.chars * share / 100
				}
				x, y := recall(ledger.Render(&s, size), w.needed)
				strict, lenient, all = strict+x, lenient+y, all+len(w.needed)
			}
			fmt.Printf("  %.3f/%.3f", float64(strict)/float64(all), float64(lenient)/float64(all))
		}
		fmt.Println()
	}
}
