package compaction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// stretch is what happens from one request of the user to the next: a file is edited and a test passes. With stop
// the user's next message comes before the agent has said anything.
func stretch(i int, stop bool) []abi.Message {
	id := func(s string) string { return fmt.Sprintf("%s%d", s, i) }
	call := func(name string, args map[string]any) abi.Message {
		m := message(id("m-"+name), abi.RoleAssistant, "")
		m.ToolCalls = []abi.ToolCall{{ID: id("c-" + name), Name: name, Arguments: args}}
		return m
	}
	out := []abi.Message{
		user(id("u"), fmt.Sprintf("Request number %d: make internal/part%d/server.go answer within %d ms.", i, i, 10+i)),
		call("Edit", map[string]any{"file_path": fmt.Sprintf("/src/internal/part%d/server.go", i), "old_string": "x", "new_string": "func answer() {}"}),
		result(id("r-Edit"), id("c-Edit"), "The file has been updated. "+words(300)),
		call("Bash", map[string]any{"command": fmt.Sprintf("go test ./internal/part%d", i)}),
		result(id("r-Bash"), id("c-Bash"), fmt.Sprintf("ok  \tinternal/part%d\t0.01s", i)),
	}
	if stop {
		return out[:len(out)-1]
	}
	return append(out, assistant(id("a"), fmt.Sprintf("Part %d answers in time now.", i)))
}

// chained is the policy of the chains: the stretch under way stays.
func chained() compaction.Policy {
	p := tight()
	p.ThresholdTokens, p.MinRangeTokens, p.SummaryTokens, p.MinSavingsRatio = 10_000, 64, 1200, .01
	return p
}

// stopped reports the stretches that the user stops.
func stopped(i int) bool { return i == 5 || i == 17 }

// remembers checks a summary after n stretches.
func remembers(t *testing.T, text string, n int) {
	t.Helper()
	for _, want := range []string{
		"“Request number 0: make internal/part0/server.go answer within 10 ms.”",
		fmt.Sprintf("“Request number %d: make internal/part%d/server.go answer within %d ms.”", n-1, n-1, 9+n),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
	_, open, _ := strings.Cut(text, "## Open\n")
	open, _, _ = strings.Cut(open, "\n\n")
	if !strings.Contains(open, "Request number 17") || strings.Count(open, " m") < 3 || !strings.Contains(open, "stopped") {
		t.Errorf("the stopped requests are not in\n%s", open)
	}
	for i := range n {
		if !strings.Contains(text, fmt.Sprintf("part%d", i)) {
			t.Errorf("the file of stretch %d is missing from\n%s", i, text)
		}
	}
}

const links = 31

// TestLedger_chain: after 31 compactions of a thread, with a restart before each, the summary has the first and the
// latest request verbatim, the stopped ones and every changed file. The ledger is stored in the thread: each compaction reads
// what is new.
func TestLedger_chain(t *testing.T) {
	t.Parallel()
	d, memory := newDesk(), compaction.NewMemory()
	var log []abi.Message
	for i := range links {
		log = append(log, stretch(i, stopped(i))...)
		c := d.at(t, nil, func(cfg *compaction.Config) {
			cfg.Policy, cfg.Store, cfg.Quota = chained(), memory, compaction.Quota{Cooldown: 1}
		})
		c.Request(thread, "")
		whole := slices.Concat(log, []abi.Message{user(fmt.Sprintf("next%d", i), "go on")})
		if !c.Consider(t.Context(), thread, whole) {
			t.Fatalf("compaction %d was not started: %+v", i, d.last(t))
		}
		consume(t, c, whole, d.run())
		if c.Total(thread) != i+1 {
			t.Fatalf("compaction %d: %+v", i, d.last(t))
		}
		stored, err := memory.LoadLedger(thread)
		if err != nil || stored.Messages != len(log) || stored.State.Messages != len(log) {
			t.Fatalf("compaction %d: the ledger has %d of %d messages (%v)", i, stored.Messages, len(log), err)
		}
		d.pass(1)
	}
	c := d.at(t, nil, func(cfg *compaction.Config) { cfg.Store = memory })
	list := c.Markers(thread)
	remembers(t, list[len(list)-1].Summary, links)
}

// TestLedger_chainOfTexts: the same where only the summary itself survives, see [compaction.Compact].
func TestLedger_chainOfTexts(t *testing.T) {
	t.Parallel()
	list := []abi.Message{system("s", "Be brief.")}
	for i := range links {
		list = append(list, stretch(i, stopped(i))...)
		got, err := compaction.Compact(t.Context(), append(list, user("next", "go on")), compaction.Options{Policy: chained()})
		if err != nil {
			t.Fatalf("compaction %d: %v", i, err)
		}
		list = got.Messages[:len(got.Messages)-1]
	}
	if len(list) != 2 {
		t.Fatalf("%d messages are left", len(list))
	}
	remembers(t, list[1].Text(), links)
}

// ledgers is a summarizer that records the ledgers that it receives.
type ledgers struct{ got []*abi.Ledger }

func (l *ledgers) Summarize(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	l.got = append(l.got, r.Ledger)
	return &abi.Summary{Text: "Done."}, nil
}

// TestLedger_stored: a summarizer receives the ledger of the log up to the end of its range, whatever the store has: none, that
// of the beginning, one of another version, or one of a log that was changed since.
func TestLedger_stored(t *testing.T) {
	t.Parallel()
	log := append(append(stretch(0, false), stretch(1, false)...), user("u", "go on"))
	end := len(log) - 1
	l := ledger.New()
	l.Add(log[:end]...)
	want := ledger.Trim(l.State(), 8*500)
	half := func() compaction.StoredLedger {
		memory := compaction.NewMemory()
		d := newDesk()
		c := d.at(t, says("x"), func(cfg *compaction.Config) { cfg.Policy, cfg.Store = chained(), memory })
		c.Request(thread, "")
		part := append(stretch(0, false), user("u", "go on"))
		c.Consider(t.Context(), thread, part)
		consume(t, c, part, d.run())
		stored, err := memory.LoadLedger(thread)
		if err != nil || stored.Messages != len(part)-1 {
			t.Fatalf("%d of %d messages are stored (%v)", stored.Messages, len(part)-1, err)
		}
		data, err := json.Marshal(stored)
		var out compaction.StoredLedger
		if err != nil || json.Unmarshal(data, &out) != nil {
			t.Fatal(err)
		}
		return out
	}
	marked := func(change func(*compaction.StoredLedger)) compaction.StoredLedger {
		s := half()
		s.State.Branch = "from-the-store"
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, tc := range map[string]struct {
		stored compaction.StoredLedger
		branch string
	}{
		"none":            {compaction.StoredLedger{}, ""},
		"of the start":    {half(), ""},
		"is continued":    {marked(nil), "from-the-store"},
		"other version":   {marked(func(s *compaction.StoredLedger) { s.State.Version-- }), ""},
		"changed message": {marked(func(s *compaction.StoredLedger) { s.Sum++ }), ""},
		"longer log":      {marked(func(s *compaction.StoredLedger) { s.Messages = 1000 }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory, d, s := compaction.NewMemory(), newDesk(), &ledgers{}
			if err := memory.SaveLedger(thread, tc.stored); err != nil {
				t.Fatal(err)
			}
			p := chained()
			p.SummaryTokens = 500
			c := d.at(t, s, func(cfg *compaction.Config) { cfg.Policy, cfg.Store = p, memory })
			c.Request(thread, "")
			if !c.Consider(t.Context(), thread, log) {
				t.Fatalf("not started: %+v", d.last(t))
			}
			consume(t, c, log, d.run())
			want := want
			want.Branch = tc.branch
			if len(s.got) != 1 || !reflect.DeepEqual(*s.got[0], want) {
				t.Errorf("got  %+v\nwant %+v", s.got, want)
			}
			if stored, _ := memory.LoadLedger(thread); stored.Messages != end || stored.State.Version != abi.LedgerVersion {
				t.Errorf("stored %d of %d messages", stored.Messages, end)
			}
		})
	}
}

// TestLedger: the native rendering holds what matters, fits the budget as this package estimates tokens, and is
// the same each time.
func TestLedger(t *testing.T) {
	t.Parallel()
	log := []abi.Message{
		user("u", "Please mend the build in internal/cli/run.go"),
		calls("m", "c"), result("r", "c", "internal/cli/run.go:7: Error: undefined runner\n"+words(400)),
		assistant("a", "runStep was renamed; see https://example.org/issue/7, runStep is in internal/cli/run.go. "+words(200)),
	}
	previous := "## Goal\nKeep the tests green."
	r := &abi.SummarizeRequest{Messages: log, PreviousSummary: &previous, BudgetTokens: 300, LiveTasks: []string{"bg_1 lints"}}
	s, err := compaction.Ledger{}.Summarize(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Keep the tests green.", "Please mend the build", "https://example.org/issue/7", "internal/cli/run.go", "bg_1 lints"} {
		if !strings.Contains(s.Text, want) {
			t.Errorf("%q is missing from\n%s", want, s.Text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (compaction.Ledger{}).Summarize(ctx, r); err == nil {
		t.Error("a cancelled request is executed")
	}
	for seed := range uint64(10) {
		g := newTalk(seed)
		g.on(40)
		for _, budget := range []int64{0, 5, 40, 200, 1000} {
			r := &abi.SummarizeRequest{Messages: g.log, BudgetTokens: budget, PreviousSummary: &previous}
			one, err := compaction.Ledger{}.Summarize(t.Context(), r)
			two, err2 := compaction.Ledger{}.Summarize(t.Context(), r)
			if budget < 40 && err != nil && err2 != nil {
				continue
			}
			if err != nil || err2 != nil || one.Text != two.Text {
				t.Fatalf("%q, then %q (%v, %v)", one.Text, two.Text, err, err2)
			}
			if n := compaction.EstimateMessage(&abi.Message{Content: []abi.ContentBlock{abi.Text(one.Text)}}) - 4; n > budget {
				t.Fatalf("%d tokens for a budget of %d:\n%s", n, budget, one.Text)
			}
		}
	}
}
