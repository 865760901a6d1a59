package summarizers_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/summarizers"
)

// review is the repository's own session.
func review(tb testing.TB) []abi.Message {
	tb.Helper()
	f, err := transcript.Open(filepath.Join("..", "examples", "sessions", "review.jsonl"), transcript.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return f.Conversations[0].Messages()
}

// TestLedgerInTheGuest compares the guest's rendering with the host's: of a ledger that the request
// holds, of messages alone, and of a previous rendering with messages behind it.
func TestLedgerInTheGuest(t *testing.T) {
	t.Parallel()
	p, err := summarizers.Open(t.Context(), load(t, hosttest.Native, "summarizers"), summarizers.Config{Use: summarizers.UseSummarize, Policy: "ledger"})
	if err != nil {
		t.Fatal(err)
	}
	log := review(t)
	render := func(l *ledger.Ledger, budget int) string {
		s := l.State()
		return ledger.Render(&s, budget)
	}
	for _, tokens := range []int64{200, 600} {
		budget := int(float64(tokens) * 3.6)
		l := ledger.New()
		l.Add(log...)
		want := render(l, budget)
		state := ledger.Trim(l.State(), budget)
		half := ledger.New()
		half.Add(log[:len(log)/2]...)
		previous := render(half, budget)
		old, _ := ledger.ReadBack(previous)
		chained := ledger.From(old)
		chained.Add(log[len(log)/2:]...)
		for name, tc := range map[string]struct {
			request abi.SummarizeRequest
			want    string
		}{
			"ledger":   {abi.SummarizeRequest{Messages: log, Ledger: &state}, want},
			"messages": {abi.SummarizeRequest{Messages: log}, want},
			"text":     {abi.SummarizeRequest{Messages: log[len(log)/2:], PreviousSummary: &previous}, render(chained, budget)},
		} {
			tc.request.ABI, tc.request.ThreadID, tc.request.Policy, tc.request.BudgetTokens = 1, "t", "ledger", tokens
			s, err := p.Summarize(t.Context(), &tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if sent := tc.request.Ledger == nil; sent != (s.FromID != "") {
				t.Errorf("%s: the guest got messages: %v, with a ledger it needs none", name, !sent)
			}
			if s.Text != tc.want || s.Policy != "ledger" {
				t.Errorf("%s, %d tokens:\n%s\n\nwant:\n%s", name, tokens, s.Text, tc.want)
			}
		}
	}
}

// TestLedgerCoversMore: a summary may be longer than the messages of its request if the ledger covers more, but not longer
// than what it replaces.
func TestLedgerCoversMore(t *testing.T) {
	t.Parallel()
	p, err := summarizers.Open(t.Context(), load(t, hosttest.Native, "summarizers"), summarizers.Config{Use: summarizers.UseSummarize})
	if err != nil {
		t.Fatal(err)
	}
	log := review(t)
	l := ledger.New()
	l.Add(log...)
	state, short, nothing := l.State(), "Short.", strings.Repeat("So far nothing. ", 200)
	for name, tc := range map[string]struct {
		previous *string
		bytes    int64
		refused  bool
	}{
		"the ledger covers more":   {nil, state.Bytes, false},
		"it covers no more":        {nil, 1, true},
		"a short summary is there": {&short, state.Bytes, true},
		"a long summary is there":  {&nothing, state.Bytes, false},
	} {
		s := state
		s.Bytes = tc.bytes
		last := []abi.Message{{ID: "m", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Go on.")}}}
		r := &abi.SummarizeRequest{ABI: 1, ThreadID: "t", Messages: last, Ledger: &s, PreviousSummary: tc.previous, BudgetTokens: 400}
		if got, err := p.Summarize(t.Context(), r); (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "the source") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
