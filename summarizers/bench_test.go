package summarizers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/summarizers"
)

// longSession is a request for a summary of a long coding session, with its ledger: the shared recording, else the
// repository's own, four times over.
func longSession(b *testing.B) *abi.SummarizeRequest {
	b.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	path, times := filepath.Join(dir, "data", "transcripts", "pi-mono", "large-session.jsonl"), 1
	if _, err := os.Stat(path); err != nil {
		path, times = filepath.Join("..", "examples", "sessions", "review.jsonl"), 4
		b.Logf("the long recording is not there (set MORTISE_SHARED): %s %d times in its place", path, times)
	}
	f, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := &abi.SummarizeRequest{ABI: 1, ThreadID: "t", BudgetTokens: 4000}
	for range times {
		r.Messages = append(r.Messages, f.Conversations[0].Messages()...)
	}
	r.ReadFiles, r.ModifiedFiles = compaction.FileOperations(r.Messages)
	l := ledger.New()
	l.Add(r.Messages...)
	state := ledger.Trim(l.State(), 4*int(r.BudgetTokens))
	r.Ledger = &state
	return r
}

// BenchmarkLedger renders the ledger of a long session in the guest, as the host sends it: with the messages that the
// summary replaces, and, to compare, without them.
func BenchmarkLedger(b *testing.B) {
	request := longSession(b)
	h, err := host.New(host.Config{CacheDir: cacheDir(), Limits: host.Limits{Timeout: time.Minute}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close(b.Context()) })
	m, err := h.Load(b.Context(), host.Spec{Path: filepath.Join("..", "testdata", "guests", "summarizers.wasm")})
	if err != nil {
		b.Fatal(err)
	}
	p, err := summarizers.Open(b.Context(), m, summarizers.Config{Use: summarizers.UseSummarize, Policy: "ledger"})
	if err != nil {
		b.Fatal(err)
	}
	alone := *request
	alone.Messages = nil
	for name, r := range map[string]*abi.SummarizeRequest{"with messages": request, "alone": &alone} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Summarize(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(compaction.Estimate(r.Messages)), "tokens")
		})
	}
}
