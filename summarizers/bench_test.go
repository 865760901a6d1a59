package summarizers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/summarizers"
)

// longSession is a request for a summary of a long coding session, at a tenth of
// its tokens: the shared recording, else the repository's own, eight times over.
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
	r := &abi.SummarizeRequest{ABI: 1, ThreadID: "t", Policy: "extract"}
	for range times {
		r.Messages = append(r.Messages, f.Conversations[0].Messages()...)
	}
	r.ReadFiles, r.ModifiedFiles = compaction.FileOperations(r.Messages)
	r.BudgetTokens = compaction.Estimate(r.Messages) / 10
	return r
}

// BenchmarkExtractLong summarizes a long session in the guest, and the same
// bytes by the same code compiled natively (BenchmarkRequest of the policy's
// package). x-native is the ratio.
func BenchmarkExtractLong(b *testing.B) {
	request := longSession(b)
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "mortise-test")
	}
	h, err := host.New(host.Config{CacheDir: cache, Limits: host.Limits{Timeout: time.Minute}})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close(b.Context())
	m, err := h.Load(b.Context(), host.Spec{Path: filepath.Join("..", "testdata", "guests", "summarizers.wasm")})
	if err != nil {
		b.Fatal(err)
	}
	p, err := summarizers.Open(b.Context(), m, summarizers.Config{Use: summarizers.UseSummarize, Policy: "extract"})
	if err != nil {
		b.Fatal(err)
	}
	native := nativeTime(b, request)
	for b.Loop() {
		if _, err := p.Summarize(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(compaction.Estimate(request.Messages)), "tokens")
	b.ReportMetric(float64(native)/1e6, "native-ms")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(native), "x-native")
}

// nativeTime runs the policy's own benchmark on the request, in its module.
func nativeTime(b *testing.B, r *abi.SummarizeRequest) time.Duration {
	b.Helper()
	data, err := wire.MessagePack.Marshal(r)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "request.msgpack")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), "go", "test", "-run", "^$", "-bench", "^BenchmarkRequest$", "-benchtime", "5x", "./extract")
	cmd.Dir = filepath.Join("modules", "summarizers")
	cmd.Env = append(os.Environ(), "MORTISE_REQUEST="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("the native benchmark: %v\n%s", err, out)
	}
	found := regexp.MustCompile(`(\d+) ns/op`).FindSubmatch(out)
	if found == nil {
		b.Fatalf("the native benchmark says no time:\n%s", out)
	}
	ns, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}
