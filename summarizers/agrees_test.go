package summarizers_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/summarizers"
)

// TestQuotaAgrees: the bundled quota without a config and the host's default rules give the same reason for
// the same facts.
func TestQuotaAgrees(t *testing.T) {
	t.Parallel()
	p, err := summarizers.Open(t.Context(), load(t, hosttest.Native, "admission"), summarizers.Config{Use: summarizers.UseAdmit, Policy: "quota"})
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 6)) //nolint:gosec // a test
	seen := map[string]int{}
	for range 3000 {
		q := facts(r)
		want := compaction.Decide(q)
		seen[want]++
		native, err := compaction.Rules{}.Admit(t.Context(), q)
		if err != nil || native.Reason != want || native.Allowed != (want == abi.ReasonAllowed) {
			t.Fatalf("seed %d: %+v, %v", seed, native, err)
		}
		if d, err := p.Admit(t.Context(), q); err != nil || d.Reason != want || d.Allowed != native.Allowed {
			t.Fatalf("seed %d: the guest decides %+v, %v, the rules %s: %+v", seed, d, err, want, q)
		}
	}
	if len(seen) != 8 {
		t.Errorf("reasons %v, want all 8", seen)
	}
}

// TestCostAgrees: the same of the bundled cost and the host's default.
func TestCostAgrees(t *testing.T) {
	t.Parallel()
	p, err := summarizers.Open(t.Context(), load(t, hosttest.Native, "admission"), summarizers.Config{Use: summarizers.UseAdmit})
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test
	seen := map[string]int{}
	for range 3000 {
		q := facts(r)
		if q.TokensBefore != nil && r.IntN(4) > 0 {
			q.Signals = abi.Signals{}
			q.Cost = &abi.CompactionCost{SummaryTokens: r.Int64N(900), SavedTokens: r.Int64N(*q.TokensBefore + 1), RewriteTokens: r.Int64N(5000), AfterTokens: r.Int64N(5000)}
		}
		if r.IntN(2) == 0 {
			q.Cache = &abi.CacheUse{AtMS: 1e12 - r.Int64N(900_000), Model: []string{"", "gpt-5", "gpt-6-sol", "claude-opus-5"}[r.IntN(4)], ReadPerMille: r.Int64N(2) * 50, WritePerMille: r.Int64N(2) * 1500}
		}
		want, err := compaction.Cost{}.Admit(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		seen[want.Reason]++
		if d, err := p.Admit(t.Context(), q); err != nil || d.Reason != want.Reason || d.Allowed != want.Allowed {
			t.Fatalf("seed %d: the guest decides %+v, %v, the host %+v: %+v", seed, d, err, want, q)
		}
	}
	if len(seen) != 10 {
		t.Errorf("reasons %v, want 10", seen)
	}
}

// facts draws a request, of which each part blocks about every eighth time.
func facts(r *rand.Rand) *abi.AdmitRequest {
	often := func() bool { return r.IntN(8) == 0 }
	near := func(n int64) int64 { return n + r.Int64N(3) - 1 } // around a limit
	known := func(n int64) *int64 {
		if r.IntN(3) == 0 {
			return nil
		}
		return &n
	}
	q := &abi.AdmitRequest{
		ThreadID: "t", NowMS: 1e12, Pending: often(), MaxAttempts: r.Int64N(4) - 1, Requested: often(),
		ThresholdTokens: 1000, WindowTokens: 2000, RangeTokens: r.Int64N(5000), Failures: r.Int64N(3),
	}
	if often() {
		q.AttemptCount = r.Int64N(200)
	}
	if often() {
		q.CooldownMS, q.CooldownRemainingMS, q.LastStartMS = 60_000, near(0), 1e12-59_000
	}
	if !often() {
		q.TokensBefore = new(r.Int64N(5000))
	}
	if often() {
		q.Signals.Memory = &abi.MemorySignal{AvailableBytes: known(near(512)), RequiredHeadroomBytes: 512, Pressure: often()}
	}
	if often() {
		q.Signals.Provider = &abi.ProviderSignal{
			P95LatencyMS: known(near(5000)), MaxP95LatencyMS: known(5000), ErrorRatePerMille: known(near(50)), MaxErrorRatePerMille: known(50),
			Stale: often(), Degraded: often(),
		}
	}
	if often() {
		q.Signals.Queue = &abi.QueueSignal{QueuedRequests: near(4), MaxQueuedRequests: 4 * r.Int64N(2), Saturated: often()}
	}
	return q
}
