package eval_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// facts is a conversation that states one fact in each of n messages, and its
// probes.
func facts(n int) eval.Set {
	var texts []string
	s := eval.Set{Name: "facts"}
	for i := range n {
		texts = append(texts, fmt.Sprintf("The code of door number %03d is K%03dX today.", i, i))
		s.Probes = append(s.Probes, eval.Probe{ID: fmt.Sprint(i), Conversation: "c", Answers: []string{fmt.Sprintf("K%03dX", i)}})
	}
	s.Conversations = []eval.Conversation{talk("c", texts...)}
	return s
}

func TestRunCountsWhatSurvives(t *testing.T) {
	t.Parallel()
	r := measure(t, eval.Config{
		Sets: []eval.Set{facts(100)}, Budgets: shares(0.5, 0.1),
		Contenders: append(eval.Baselines(), policy("all", func(r *abi.SummarizeRequest) (*abi.Summary, error) {
			return text(eval.Flatten(r.Messages))
		})),
	})
	for name, want := range map[string]eval.Score{"last-n": {Literal: 0.5, Grounded: 0.5}, "index": {Literal: 1}, "all": {Literal: 0.5, Grounded: 0.5}} {
		c, ok := r.Find("facts", name, share(0.5), 1, "")
		if !ok || c.Score != want || c.Probes != 100 || c.Conversations != 1 || c.Compactions != 1 {
			t.Errorf("%s: %+v, want %+v", name, c, want)
		}
	}
	if c, _ := r.Find("facts", "all", share(0.1), 1, ""); c.Overruns != 1 || c.Literal != 0.1 || c.Savings < 0.85 || c.Structure.Failed[eval.CheckBudget] != 1 {
		t.Errorf("a text that is too long: %+v", c)
	}
}

// TestChainsGoOn looks at what a contender is asked along a chain.
func TestChainsGoOn(t *testing.T) {
	t.Parallel()
	for growth, budgets := range map[eval.Growth][]int64{eval.OfWhole: {880, 880, 880, 880}, eval.OfSaid: {220, 440, 660, 880}} {
		var asked []int64
		var seen []string
		var before []string
		r := measure(t, eval.Config{
			Sets: []eval.Set{facts(40)}, Budgets: shares(0.5), Chains: []int{4}, Growths: []eval.Growth{growth},
			Contenders: []eval.Contender{policy("p", func(r *abi.SummarizeRequest) (*abi.Summary, error) {
				asked = append(asked, r.BudgetTokens)
				for _, m := range r.Messages {
					seen = append(seen, m.ID)
				}
				if r.PreviousSummary != nil {
					before = append(before, *r.PreviousSummary)
				}
				return text(fmt.Sprintf("after %d: K000X, K001X", len(asked)))
			})},
		})
		if !slices.Equal(asked, budgets) {
			t.Errorf("%s: budgets %d, want %d", growth, asked, budgets)
		}
		if len(seen) != 40 || seen[0] != "m0" || seen[39] != "m39" {
			t.Errorf("%s: messages %q", growth, seen)
		}
		if want := []string{"after 1: K000X, K001X", "after 2: K000X, K001X", "after 3: K000X, K001X"}; !slices.Equal(before, want) {
			t.Errorf("%s: previous summaries %q", growth, before)
		}
		c, _ := r.Find("facts", "p", share(0.5), 4, growth)
		if c.Literal != 0.05 || c.Known == nil || c.Known.Probes != 10 || c.Known.First.Literal != 0.2 || c.Known.Kept.Literal != 1 {
			t.Errorf("%s: %+v known %+v", growth, c, c.Known)
		}
	}
}

// TestKeptIsOfTheSameFacts: what comes in late does not make up for what was lost.
func TestKeptIsOfTheSameFacts(t *testing.T) {
	t.Parallel()
	step := 0
	r := measure(t, eval.Config{
		Sets: []eval.Set{facts(40)}, Chains: []int{2}, Budgets: shares(1),
		Contenders: []eval.Contender{policy("p", func(*abi.SummarizeRequest) (*abi.Summary, error) {
			step++
			return text([]string{"K000X K001X K030X", "K001X K002X K003X"}[step-1])
		})},
	})
	c := r.Cells[0]
	want := eval.Known{Probes: 20, First: eval.Score{Literal: 0.1}, Last: eval.Score{Literal: 0.15}, Kept: eval.Score{Literal: 0.5, Grounded: 1}}
	if c.Known == nil || *c.Known != want {
		t.Errorf("known %+v, want %+v", c.Known, want)
	}
}

// TestPartsKeepRoundsWhole: no call is parted from its results, nothing is lost
// or doubled, and leading system messages stay out.
func TestPartsKeepRoundsWhole(t *testing.T) {
	t.Parallel()
	c := eval.Conversation{ID: "c", Messages: []abi.Message{say(abi.RoleSystem, "sys", strings.Repeat("rules ", 200))}}
	var want []string
	for i := range 9 {
		call := say(abi.RoleAssistant, fmt.Sprintf("a%d", i), "I look.")
		call.ToolCalls = []abi.ToolCall{{ID: fmt.Sprint(i), Name: "read", Arguments: map[string]any{"path": fmt.Sprintf("f%d.go", i)}}}
		result := say(abi.RoleTool, fmt.Sprintf("t%d", i), strings.Repeat("x", 10*i)+" fact_number")
		result.ToolCallID = fmt.Sprint(i)
		c.Messages = append(c.Messages, call, result)
		want = append(want, call.ID, result.ID)
	}
	for k := 1; k <= 12; k++ {
		var seen []string
		measure(t, eval.Config{
			Sets:   []eval.Set{{Name: "s", Conversations: []eval.Conversation{c}, Probes: []eval.Probe{{ID: "p", Conversation: "c", Answers: []string{"fact_number"}}}}},
			Chains: []int{k},
			Contenders: []eval.Contender{policy("p", func(r *abi.SummarizeRequest) (*abi.Summary, error) {
				if r.Messages[0].Role == abi.RoleTool {
					t.Errorf("a part of %d begins with a result", k)
				}
				for _, m := range r.Messages {
					seen = append(seen, m.ID)
				}
				if last := r.Messages[len(r.Messages)-1]; last.ID == "t8" && !slices.Contains(r.ReadFiles, "f0.go") {
					t.Errorf("the files of earlier parts are not told: %q", r.ReadFiles)
				}
				return text("x")
			})},
		})
		if !slices.Equal(seen, want) {
			t.Errorf("chain %d: messages %q", k, seen)
		}
	}
}

func TestFailuresKeepWhatWasThere(t *testing.T) {
	t.Parallel()
	n := 0
	r := measure(t, eval.Config{
		Sets: []eval.Set{facts(10)}, Chains: []int{1, 2}, Budgets: shares(0.5),
		Contenders: []eval.Contender{policy("p", func(*abi.SummarizeRequest) (*abi.Summary, error) {
			n++
			if n != 2 { // the first of the chain
				return nil, errors.New("no such luck")
			}
			return text("K000X")
		})},
	})
	if c := r.Cells[0]; c.Literal != 0 || c.Failures != 1 || c.Error != "no such luck" {
		t.Errorf("single: %+v", c)
	}
	if c := r.Cells[1]; c.Literal != 0.1 || c.Failures != 1 || c.Compactions != 2 {
		t.Errorf("chain: %+v", c)
	}
}

func TestStructureIsChecked(t *testing.T) {
	t.Parallel()
	for says, s := range map[eval.Check]abi.Summary{
		eval.CheckText:   {Text: " \n"},
		eval.CheckBudget: {Text: strings.Repeat("long ", 400)},
		eval.CheckTags:   {Text: "a </Conversation-Summary> b"},
		eval.CheckRange:  {Text: "a", FromID: "m0", ToID: "other"},
		"":               {Text: "## Goal\n- The code of door number 001 is kept", FromID: "m0", ToID: "m9"},
	} {
		r := measure(t, eval.Config{Sets: []eval.Set{facts(10)}, Budgets: shares(0.9), Contenders: []eval.Contender{
			policy("p", func(*abi.SummarizeRequest) (*abi.Summary, error) { return &s, nil }),
		}})
		got := r.Cells[0].Structure
		if says == "" {
			if len(got.Failed) != 0 || got.Sections != 1 || got.Prose < 0.6 || got.Modifying != 0 {
				t.Errorf("a good text: %+v", got)
			}
			continue
		}
		if len(got.Failed) != 1 || got.Failed[says] != 1 {
			t.Errorf("%s: %+v", says, got)
		}
	}
}

func TestProseToldFromLists(t *testing.T) {
	t.Parallel()
	r := measure(t, eval.Config{Sets: []eval.Set{facts(100)}, Contenders: eval.Baselines()})
	for name, least := range map[string]float64{"last-n": 0.9, "index": 0} {
		if c, _ := r.Find("facts", name, share(0.1), 1, ""); c.Structure.Prose < least || name == "index" && c.Structure.Prose > 0 {
			t.Errorf("%s: prose %v", name, c.Structure.Prose)
		}
	}
}

func TestRunIsDeterministic(t *testing.T) {
	t.Parallel()
	c := eval.Config{
		Sets: []eval.Set{facts(60)}, Chains: []int{1, 4}, Growths: []eval.Growth{eval.OfWhole, eval.OfSaid},
		Contenders: eval.Baselines(), Now: func() time.Time { return time.Time{} },
	}
	if a, b := measure(t, c), measure(t, c); !reflect.DeepEqual(a, b) {
		t.Error("two runs differ")
	}
}

func TestProgressReachesItsEnd(t *testing.T) {
	t.Parallel()
	var list []eval.Progress
	measure(t, eval.Config{
		Sets: []eval.Set{facts(20)}, Chains: []int{1, 4}, Contenders: eval.Baselines(),
		Progress: func(p eval.Progress) { list = append(list, p) },
	})
	last := list[len(list)-1]
	if want := 5 * len(eval.Baselines()); last.Done != want || last.All != want || len(list) != want+1 {
		t.Errorf("%d reports, the last %+v, want %d", len(list), last, want)
	}
}

func TestBelowNamesPolicies(t *testing.T) {
	t.Parallel()
	r := measure(t, eval.Config{Sets: []eval.Set{facts(10)}, Contenders: append(eval.Baselines(),
		policy("p", func(*abi.SummarizeRequest) (*abi.Summary, error) { return text("K001X") }))})
	if got := r.Below(eval.Score{Literal: 0.2}); len(got) != 1 || got[0].Contender != "p" {
		t.Errorf("below: %+v", got)
	}
	if got := r.Below(eval.Score{Literal: 0.1}); len(got) != 0 {
		t.Errorf("at the threshold: %+v", got)
	}
	if got := r.Below(eval.Score{Grounded: 0.1}); len(got) != 1 {
		t.Errorf("below in grounding: %+v", got)
	}
}

// TestWhatNothingCouldGroundDoesNotCount: a line that is a needle by itself has no
// sentence around it.
func TestWhatNothingCouldGroundDoesNotCount(t *testing.T) {
	t.Parallel()
	s := eval.Set{
		Name: "s", Conversations: []eval.Conversation{talk("c", "panic: send on closed channel\nThe worker K417 closes it too early.")},
		Probes: []eval.Probe{
			{ID: "a", Conversation: "c", Answers: []string{"panic: send on closed channel"}},
			{ID: "b", Conversation: "c", Answers: []string{"K417"}},
			{ID: "c", Conversation: "c", Question: "Why?", Answers: []string{"K417"}},
			{ID: "d", Conversation: "c", Answers: []string{"never said"}},
		},
	}
	r := measure(t, eval.Config{Sets: []eval.Set{s}, Budgets: shares(1), Contenders: []eval.Contender{
		policy("p", func(*abi.SummarizeRequest) (*abi.Summary, error) {
			return text("panic: send on closed channel; worker K417")
		}),
	}})
	if c := r.Cells[0]; c.Probes != 3 || c.Groundable != 1 || c.Unstated != 1 || c.Literal != 1 || c.Grounded != 1 {
		t.Errorf("%+v", c)
	}
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	good := func() eval.Config {
		return eval.Config{Sets: []eval.Set{facts(3)}, Contenders: eval.Baselines()}
	}
	for says, spoil := range map[string]func(c *eval.Config){
		"Config.Budgets: 0% must be":                    func(c *eval.Config) { c.Budgets = shares(0) },
		"Config.Budgets: 150% must be":                  func(c *eval.Config) { c.Budgets = shares(1.5) },
		"Config.Chains: 0 must be from 1":               func(c *eval.Config) { c.Chains = []int{0} },
		`Config.Growths: "x" must be "whole" or "said"`: func(c *eval.Config) { c.Growths = []eval.Growth{"x"} },
		"Config.Contenders: there are none":             func(c *eval.Config) { c.Contenders = nil },
		`Config.Contenders: there are two "last-n"`:     func(c *eval.Config) { c.Contenders = append(c.Contenders, c.Contenders[0]) },
		`Config.Contenders: "x" needs a name and a`:     func(c *eval.Config) { c.Contenders = []eval.Contender{{Name: "x"}} },
		"Config.Sets: there are none":                   func(c *eval.Config) { c.Sets = nil },
		`set "facts": there are no probes`:              func(c *eval.Config) { c.Sets[0].Probes = nil },
		`set "facts": probe "0": answers are missing`:   func(c *eval.Config) { c.Sets[0].Probes[0].Answers = nil },
		`conversation "z" is not there or empty`:        func(c *eval.Config) { c.Sets[0].Probes[1].Conversation = "z" },
		`there are two conversations "c"`: func(c *eval.Config) {
			c.Sets[0].Conversations = append(c.Sets[0].Conversations, c.Sets[0].Conversations[0])
		},
	} {
		c := good()
		spoil(&c)
		if _, err := eval.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := eval.Run(ctx, eval.Config{Sets: []eval.Set{facts(3)}, Contenders: []eval.Contender{
		policy("p", func(*abi.SummarizeRequest) (*abi.Summary, error) { cancel(); return text("x") }),
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
