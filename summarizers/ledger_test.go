package summarizers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/host"
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

// recorded are the messages of a recording in the shared data, else those of the repository's own session, several times
// over.
func recorded(b *testing.B, times int, path ...string) []abi.Message {
	b.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	f, err := transcript.Open(filepath.Join(append([]string{dir, "data", "transcripts"}, path...)...), transcript.Options{})
	if err == nil {
		return f.Conversations[0].Messages()
	}
	b.Logf("the recording is not there (set MORTISE_SHARED): the repository's own session %d times in its place", times)
	return slices.Repeat(review(b), times)
}

// BenchmarkLedgerLong renders ledgers in the guest, decoding included: of a coding session of 146k tokens, of a meeting of
// 143 KB and of tool dialogues, at parts of their sizes.
func BenchmarkLedgerLong(b *testing.B) {
	h, err := host.New(host.Config{CacheDir: cacheDir(), Limits: host.Limits{Timeout: time.Minute}})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close(b.Context())
	m, err := h.Load(b.Context(), host.Spec{Path: filepath.Join("..", "testdata", "guests", "summarizers.wasm")})
	if err != nil {
		b.Fatal(err)
	}
	p, err := summarizers.Open(b.Context(), m, summarizers.Config{Use: summarizers.UseSummarize, Policy: "ledger"})
	if err != nil {
		b.Fatal(err)
	}
	// The host refuses an answer that is longer than its source.
	source := []abi.Message{{ID: "m", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(strings.Repeat("a long source ", 10_000))}}}
	session, meeting := recorded(b, 4, "pi-mono", "large-session.jsonl"), recorded(b, 1, "qmsum", "committee-val.jsonl")
	for _, r := range []struct {
		name        string
		log         []abi.Message
		thousandths int64
		messages    []abi.Message
	}{
		{"session/1%", session, 10, source},
		{"session/4.3%", session, 43, source},
		{"session/10%", session, 100, source},
		{"session/4.3%-and-all-messages", session, 43, session},
		{"meeting/1%", meeting, 10, source},
		{"meeting/4.3%", meeting, 43, source},
		{"meeting/10%", meeting, 100, source},
		{"meeting/20%", meeting, 200, source},
	} {
		b.Run(r.name, func(b *testing.B) {
			l := ledger.New()
			l.Add(r.log...)
			request := &abi.SummarizeRequest{ABI: 1, ThreadID: "t", Policy: "ledger", Messages: r.messages, BudgetTokens: compaction.Estimate(r.log) * r.thousandths / 1000}
			state := ledger.Trim(l.State(), int(request.BudgetTokens)*4)
			request.Ledger = &state
			for b.Loop() {
				if _, err := p.Summarize(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
