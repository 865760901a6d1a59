//go:build linux

package summarizers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/summarizers"
)

// cpuTime is what this process has used of its processors: what a call costs, also on a machine that is busy.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
			var took []float64
			for b.Loop() {
				start := cpuTime(b)
				if _, err := p.Summarize(b.Context(), request); err != nil {
					b.Fatal(err)
				}
				took = append(took, float64((cpuTime(b)-start).Microseconds())/1000)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "cpu-p50-ms")
		})
	}
}
