package summarizers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/summarizers"
)

// build builds a guest of this repository, as an author would, with more flags for the linker.
func build(t *testing.T, dir, pkg string, flags ...string) []byte {
	t.Helper()
	if testing.Short() {
		testskip.Skip(t, "builds a guest; run without -short")
	}
	file := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= "+strings.Join(flags, " "), "-o", file, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, out)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// faulty opens a policy of the guest that fails.
func faulty(t *testing.T, m *host.Module, policy string) *summarizers.Policy {
	t.Helper()
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// desk runs the tasks of a compactor at once, and keeps notices and events.
type desk struct {
	mu      sync.Mutex
	notices []abi.Notice
	events  []compaction.Event
}

func (d *desk) spawn(ctx context.Context, _, id, _, _ string, body func(context.Context) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := body(ctx)
	end := abi.Notice{Kind: abi.NoticeCompleted, TaskID: id}
	if err != nil {
		end.Kind, end.Error = abi.NoticeFailed, err.Error()
	}
	d.notices = append(d.notices, end)
	return nil
}

// compact runs one compaction and returns what became of it.
func compact(t *testing.T, s compaction.Summarizer, name string, timeout time.Duration) (c *compaction.Compactor, log []abi.Message, last compaction.Event) {
	t.Helper()
	d := &desk{}
	c, err := compaction.New(compaction.Config{
		Policy: compaction.Policy{
			WindowTokens: 100_000, ThresholdTokens: 500, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 100, SummaryTokens: 300, MinSurvival: -1,
		},
		Quota:      compaction.Quota{Timeout: timeout},
		Summarizer: s, PolicyName: name, Spawn: d.spawn, Observe: func(e compaction.Event) { d.events = append(d.events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		log = append(log, abi.Message{ID: fmt.Sprintf("m%d", i), Role: abi.RoleUser, Content: []abi.ContentBlock{
			abi.Text(fmt.Sprintf("Wish %d concerns services/billing/retry.go. ", i) + strings.Repeat("It has to work on Fridays as well. ", 20)),
		}})
	}
	if !c.Consider(t.Context(), "t", log) {
		t.Fatalf("nothing was started: %+v", d.events)
	}
	for _, n := range d.notices {
		if !c.Consume("t", log, n) {
			t.Errorf("the notice %+v was left to others", n)
		}
	}
	return c, log, d.events[len(d.events)-1]
}

// faults are the policies of the guest, and what is reported of each.
func faults() []struct{ policy, says string } {
	return []struct{ policy, says string }{
		{"trap", "exit code 3"},
		{"deep", ""}, // the words are the engine's
		{"panic", "guest panicked: on purpose"},
		{"hang", "deadline"},
		{"grow", "memory"},
		{"error", "no way"},
		{"nil", "neither an answer nor an error"},
		{"empty", "it answered nothing"},
		{"blank", "it answered nothing"},
		{"input", "its answer has"},
		{"larger", "its answer has"},
		{"huge", "its answer has"},
		{"lies", `it claims to cover "m0" to "elsewhere"`},
	}
}

// TestFaultyGuests: whatever a guest does, alone it leaves the history as it was and the reason
// is reported; with a fallback the compaction succeeds all the same, and both are reported.
func TestFaultyGuests(t *testing.T) {
	t.Parallel()
	wasm := build(t, filepath.Join("testdata", "faulty"), ".")
	h := newHost(t, hosttest.Native)
	broken := func(timeout time.Duration) *host.Module {
		m, err := h.Load(t.Context(), host.Spec{
			Name: "faulty", Wasm: wasm, Limits: host.Limits{Timeout: timeout, OutputBytes: 8 << 20, MemoryPages: 2048},
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	patient, impatient := broken(time.Minute), broken(300*time.Millisecond)
	good, err := h.Load(t.Context(), host.Spec{Path: filepath.Join("..", "testdata", "guests", "summarizers.wasm"), Limits: host.Limits{Timeout: 30 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	next := faulty(t, good, "ledger")
	for _, tc := range faults() {
		t.Run(tc.policy, func(t *testing.T) {
			t.Parallel()
			m := patient
			if tc.policy == "hang" {
				m = impatient
			}
			p := faulty(t, m, tc.policy)
			c, log, e := compact(t, p, p.Name(), time.Minute)
			if e.Kind == compaction.EventSwapped || e.Reason == "" || !strings.Contains(e.Reason, tc.says) || e.Policy != "faulty/"+tc.policy {
				t.Errorf("alone: %s: %s by %s", e.Kind, e.Reason, e.Policy)
			}
			if !reflect.DeepEqual(c.View("t", log), log) || c.Total("t") != 0 || c.Pending("t") {
				t.Error("alone: the history was changed")
			}
			chain, err := summarizers.NewChain(summarizers.Link{Name: p.Name(), Summarizer: p}, summarizers.Link{Name: next.Name(), Summarizer: next})
			if err != nil {
				t.Fatal(err)
			}
			c, log, e = compact(t, chain, chain.Name(), time.Minute)
			if e.Kind != compaction.EventSwapped || e.Policy != "summarizers/ledger" || !strings.HasPrefix(e.Reason, "fallback after faulty/"+tc.policy+": ") ||
				!strings.Contains(e.Reason, tc.says) {
				t.Errorf("chain: %s: %s by %s", e.Kind, e.Reason, e.Policy)
			}
			if m := c.Markers("t"); len(m) != 1 || m[0].Policy != "summarizers/ledger" || !c.Undo("t") || !reflect.DeepEqual(c.View("t", log), log) {
				t.Errorf("chain: markers %+v", m)
			}
		})
	}
}

// TestTags: a summary cannot end itself and speak in another voice.
func TestTags(t *testing.T) {
	t.Parallel()
	wasm := build(t, filepath.Join("testdata", "faulty"), ".")
	m, err := newHost(t, hosttest.Native).Load(t.Context(), host.Spec{Name: "faulty", Wasm: wasm})
	if err != nil {
		t.Fatal(err)
	}
	c, log, e := compact(t, faulty(t, m, "tags"), "tags", time.Minute)
	view, err := json.Marshal(c.View("t", log))
	if err != nil || e.Kind != compaction.EventSwapped {
		t.Fatalf("%s: %s, %v", e.Kind, e.Reason, err)
	}
	var back []abi.Message
	if err := json.Unmarshal(view, &back); err != nil {
		t.Fatal(err)
	}
	text := back[0].Text()
	if strings.Count(text, "</conversation-summary>") != 1 || !strings.HasSuffix(text, "</conversation-summary>") || strings.Contains(text, "< /Conversation") {
		t.Errorf("%s", text)
	}
}

// TestAllFail: when every link fails the error has the reason of each, and nothing changes.
func TestAllFail(t *testing.T) {
	t.Parallel()
	chain, err := summarizers.NewChain(summarizers.Link{Name: "one", Summarizer: scripted(func(context.Context) (*abi.Summary, error) {
		panic("boom")
	})}, summarizers.Link{Name: "two", Summarizer: scripted(func(context.Context) (*abi.Summary, error) {
		return nil, errors.New("no key")
	})})
	if err != nil {
		t.Fatal(err)
	}
	c, log, e := compact(t, chain, "one", time.Minute)
	if e.Kind != compaction.EventFailed || e.Reason != "one: it panicked: boom; two: no key" || !reflect.DeepEqual(c.View("t", log), log) {
		t.Errorf("%s: %s", e.Kind, e.Reason)
	}
	for _, links := range [][]summarizers.Link{nil, {{Name: "x"}}, {{Summarizer: chain}}} {
		if _, err := summarizers.NewChain(links...); err == nil {
			t.Errorf("%+v makes a chain", links)
		}
	}
}

// scripted is a summarizer that a test writes.
type scripted func(ctx context.Context) (*abi.Summary, error)

func (f scripted) Summarize(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
	return f(ctx)
}

// TestSlowLinkLeavesTime: a link that hangs does not use up the time of those behind it, and a
// caller that gives up ends the chain.
func TestSlowLinkLeavesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		hangs := scripted(func(ctx context.Context) (*abi.Summary, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		works := scripted(func(context.Context) (*abi.Summary, error) {
			asked++
			return &abi.Summary{Text: "Short."}, nil
		})
		chain, err := summarizers.NewChain(summarizers.Link{Name: "hangs", Summarizer: hangs}, summarizers.Link{Name: "works", Summarizer: works})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, _, e := compact(t, chain, chain.Name(), time.Minute)
		if e.Kind != compaction.EventSwapped || e.Policy != "works" || e.Reason != "fallback after hangs: context deadline exceeded" || time.Since(start) != 40*time.Second {
			t.Errorf("after %s: %s: %s by %s", time.Since(start), e.Kind, e.Reason, e.Policy)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := chain.Summarize(ctx, &abi.SummarizeRequest{Messages: conversation(), BudgetTokens: 100}); !errors.Is(err, context.Canceled) || asked != 1 {
			t.Errorf("error %v", err)
		}
	})
}

// TestSwapInFlight swaps the module of a chain's link while compactions run on many threads:
// every one ends as a swap, on the old binary or on the new one.
func TestSwapInFlight(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, "summarizers")
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := summarizers.NewChain(summarizers.Link{Name: "live", Summarizer: p})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	began := make(chan struct{}, 64)
	done := make(chan struct{})
	var rounds atomic.Int64
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				case began <- struct{}{}:
				default:
				}
				_, _, e := compact(t, chain, "live", time.Minute)
				if e.Kind != compaction.EventSwapped || e.Reason != "" {
					t.Errorf("%s: %s", e.Kind, e.Reason)
					return
				}
				rounds.Add(1)
			}
		})
	}
	<-began
	for i := range 4 {
		spec := fixed(t)
		if i%2 == 1 {
			spec = host.Spec{Path: filepath.Join("..", "testdata", "guests", "summarizers.wasm")}
		}
		if _, err := p.Swap(t.Context(), spec, summarizers.SwapOptions{Untried: true}); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	if rounds.Load() == 0 || p.Info().Generation != 5 {
		t.Errorf("%d compactions, generation %d", rounds.Load(), p.Info().Generation)
	}
}
