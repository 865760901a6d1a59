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
)

func TestRequest(t *testing.T) {
	t.Parallel()
	var got *abi.SummarizeRequest
	d := newDesk()
	c := d.at(t, scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
		got = r
		return &abi.Summary{Text: "short"}, nil
	}), func(cfg *compaction.Config) {
		cfg.Policy.ThresholdTokens = 50_000
		cfg.LiveTasks = func(id string) []string { return []string{id + " builds"} }
	})
	log := filler()
	log[1].ToolCalls = []abi.ToolCall{{ID: "c", Name: "edit", Arguments: map[string]any{"path": "a.go"}}}
	if c.Consider(t.Context(), thread, log) || len(d.events) != 0 {
		t.Fatal("started below the threshold")
	}
	c.Request(thread, "the tests")
	if !c.Consider(t.Context(), thread, log) {
		t.Fatal("not started on request")
	}
	consume(t, c, log, d.run())
	want := &abi.SummarizeRequest{
		ThreadID: thread, Messages: log[:6], BudgetTokens: 500, Focus: "the tests",
		ModifiedFiles: []string{"a.go"}, LiveTasks: []string{thread + " builds"},
		Masking: &abi.Masking{ViewTokens: c.Tokens(thread, log), GoalTokens: 30_000},
	}
	if got.Ledger == nil || got.Ledger.Messages != 6 || len(got.Ledger.Talk.Requests) != 3 {
		t.Errorf("the ledger is %+v", got.Ledger)
	}
	got.Ledger = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("asked %+v", got)
	}
	if c.Consider(t.Context(), thread, log) {
		t.Error("one request started two")
	}
}

// A summary may not be longer than what saves enough.
func TestBudget(t *testing.T) {
	t.Parallel()
	var got []int64
	d := newDesk()
	c := d.at(t, scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
		got = append(got, r.BudgetTokens)
		return &abi.Summary{Text: "short"}, nil
	}), func(cfg *compaction.Config) {
		cfg.Policy = tight()
		cfg.Policy.ThresholdTokens, cfg.Policy.SummaryTokens, cfg.Policy.MinSavingsRatio = 2_000, 1_500, 0.5
	})
	small := []abi.Message{assistant("a", words(1996)), user("u", words(100))}
	large := []abi.Message{assistant("a", words(9000)), user("u", "x")}
	c.Consider(t.Context(), thread, small)
	c.Consider(t.Context(), "thread-2", large)
	d.run()
	if want := []int64{(compaction.Estimate(small[:1]) - compaction.Estimate(small)/2) * 8 / 10, 1_500}; !slices.Equal(got, want) {
		t.Errorf("budgets %v, want %v", got, want)
	}
}

// The window is exceeded while no compaction lands: the view is cut, and said so
// once.
func TestFallback(t *testing.T) {
	t.Parallel()
	d := newDesk()
	c := d.at(t, says("x"), func(cfg *compaction.Config) {
		cfg.Policy = compaction.Policy{WindowTokens: 3_000, ReserveTokens: 500, ThresholdTokens: 2_000, KeepRecentTokens: 500, SummaryTokens: 100}
	})
	log := rounds(100)
	for range 3 {
		view := c.View(thread, log)
		if n := c.Tokens(thread, view); n > 2_500 || n < 2_000 || view[0].ID != "s" || view[1].ID != "truncated" {
			t.Fatalf("%d tokens: %v", n, ids(view))
		}
	}
	if e := d.last(t); len(d.events) != 1 || e.Kind != compaction.EventFallback || e.PreTokens != compaction.Estimate(log) || e.PostTokens > 2_500 {
		t.Errorf("told %+v", d.events)
	}
	c.View(thread, log[:10])
	c.View(thread, log)
	if len(d.events) != 2 {
		t.Error("the second time was not told")
	}
	// Bills count: what is estimated to fit does not.
	small := rounds(30)
	if got := c.View("thread-2", small); len(got) != len(small) {
		t.Fatal("cut for nothing")
	}
	c.Calibrate("thread-2", 2*compaction.Estimate(small), small)
	if got := c.View("thread-2", small); len(got) >= len(small) || c.Tokens("thread-2", got) > 2_500 {
		t.Errorf("%d tokens after the bill", c.Tokens("thread-2", got))
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field  string
		policy compaction.Policy
		quota  compaction.Quota
	}{
		{"WindowTokens", compaction.Policy{WindowTokens: -1}, compaction.Quota{}},
		{"KeepRecentMessages", compaction.Policy{KeepRecentMessages: -1}, compaction.Quota{}},
		{"MinSavingsRatio", compaction.Policy{MinSavingsRatio: 1}, compaction.Quota{}},
		{"MinSurvival", compaction.Policy{MinSurvival: 1.1}, compaction.Quota{}},
		{"ReserveTokens", compaction.Policy{WindowTokens: 10, ReserveTokens: 10}, compaction.Quota{}},
		{"KeepRecentTokens", compaction.Policy{ThresholdTokens: 100, KeepRecentTokens: 90}, compaction.Quota{}},
		{"ThresholdTokens is 100000, must be below WindowTokens less ReserveTokens (1000 - 250 = 750)", compaction.Policy{WindowTokens: 1000, ThresholdTokens: 100_000}, compaction.Quota{}},
		{"ThresholdTokens is 750", compaction.Policy{WindowTokens: 1000, ThresholdTokens: 750}, compaction.Quota{}},
		{"ReserveTokens (200000 - 16384 = 183616)", compaction.Policy{ThresholdTokens: 190_000}, compaction.Quota{}},
		{"Cooldown", compaction.Policy{}, compaction.Quota{Cooldown: -1}},
		{"Timeout", compaction.Policy{}, compaction.Quota{Timeout: -1}},
		{"MaxAttempts", compaction.Policy{}, compaction.Quota{MaxAttempts: -1}},
	} {
		t.Run(fmt.Sprintf("%s %+v", tc.field, tc.quota), func(t *testing.T) {
			t.Parallel()
			_, err := compaction.New(compaction.Config{
				Policy: tc.policy, Quota: tc.quota, Summarizer: says("x"), Spawn: newDesk().spawn,
			})
			if err == nil || !strings.Contains(err.Error(), tc.field) {
				t.Errorf("got %v, want an error that names %s", err, tc.field)
			}
		})
	}
}

// TestThresholdBelowTheWindow has thresholds that leave the reserve alone, the default
// of a policy that reserves much among them.
func TestThresholdBelowTheWindow(t *testing.T) {
	t.Parallel()
	for _, p := range []compaction.Policy{
		{}, {WindowTokens: 1000}, {WindowTokens: 1000, ThresholdTokens: 749}, {WindowTokens: 1000, ReserveTokens: 900}, {ThresholdTokens: 183_615},
	} {
		if _, err := compaction.New(compaction.Config{Policy: p, Summarizer: says("x"), Spawn: newDesk().spawn}); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestMarkerJSON(t *testing.T) {
	t.Parallel()
	d := newDesk()
	c := d.at(t, says("short"), nil)
	log := filler()
	c.Consider(t.Context(), thread, log)
	consume(t, c, log, d.run())
	m := c.Markers(thread)[0]
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back compaction.Marker
	if err := json.Unmarshal(out, &back); err != nil || !reflect.DeepEqual(m, back) {
		t.Errorf("%s became %+v (%v)", out, back, err)
	}
	if !reflect.DeepEqual(compaction.View(log, &back), c.View(thread, log)) {
		t.Error("the marker that was read again shows another view")
	}
}
