package summarizers_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/summarizers"
)

// broken is the faulty guest, in which every policy fails in that way.
func broken(t *testing.T, mode string) host.Spec {
	t.Helper()
	return host.Spec{
		Wasm:   build(t, filepath.Join("testdata", "faulty"), ".", "-X", "main.mode="+mode),
		Limits: host.Limits{Timeout: 10 * time.Second, OutputBytes: 8 << 20},
	}
}

// TestSwapProbes: a binary that fails on the built-in sample does not go live.
func TestSwapProbes(t *testing.T) {
	t.Parallel()
	p := faulty(t, load(t, hosttest.Native, "summarizers"), "ledger")
	for mode, says := range map[string]string{
		"panic": "guest panicked: on purpose", "trap": "exit code 3", "nil": "neither an answer nor an error",
		"empty": "it answered nothing", "input": "its answer has", "lies": "which was not asked for",
	} {
		_, err := p.Swap(t.Context(), broken(t, mode), summarizers.SwapOptions{})
		if err == nil || !strings.Contains(err.Error(), "summarize fails on the built-in sample") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v does not say %q", mode, err, says)
		}
	}
	if p.Info().Generation != 1 || p.Name() != "summarizers/ledger" {
		t.Errorf("%s, generation %d", p.Name(), p.Info().Generation)
	}
}

// TestSwapRollsBack: a binary that passes the sample and fails afterwards goes by the time at which the
// breaker would open, wherever the failure shows: the host, the policy, or the chain that hides it.
func TestSwapRollsBack(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"later-panic", "later-empty", "later-lies"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := load(t, hosttest.Native, "summarizers")
			p, next := faulty(t, m, "ledger"), faulty(t, load(t, hosttest.Native, "summarizers"), "ledger")
			chain, err := summarizers.NewChain(summarizers.Link{Name: "live", Summarizer: p}, summarizers.Link{Name: "next", Summarizer: next})
			if err != nil {
				t.Fatal(err)
			}
			good, bad := p.Version(), broken(t, mode)
			for name, s := range map[string]compaction.Summarizer{"alone": p, "chain": chain} {
				before := m.Stats().Rollbacks
				if _, err := p.Swap(t.Context(), bad, summarizers.SwapOptions{Untried: true}); err != nil || chain.Version() == good {
					t.Fatalf("%s: %v, version %s", name, err, chain.Version())
				}
				for range 3 {
					compact(t, s, name, time.Minute)
				}
				if p.Version() != good || m.Stats().Rollbacks != before+1 {
					t.Fatalf("%s: version %s after 3 failures, %+v", name, p.Version(), m.Stats())
				}
				if _, _, e := compact(t, s, name, time.Minute); e.Kind != compaction.EventSwapped || e.Reason != "" {
					t.Errorf("%s: after the roll-back: %s: %s", name, e.Kind, e.Reason)
				}
			}
			if _, err := p.Swap(t.Context(), bad, summarizers.SwapOptions{Untried: true}); err != nil {
				t.Fatal(err)
			}
			version := chain.Version()
			if chain.RollBack(good, "it is not in use") || !chain.RollBack(version, "the breaker opens") || chain.RollBack(version, "again") || p.Version() != good {
				t.Error("rolled back at the wrong time")
			}
		})
	}
}

// TestSwapAdmissionProbes: an admission policy answers a sample before it goes live, and an answer that
// compaction cannot use counts against it.
func TestSwapAdmissionProbes(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, "admission")
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseAdmit})
	if err != nil {
		t.Fatal(err)
	}
	good := p.Version()
	for answer, says := range map[string]string{
		`{"allowed":false}`: "refused without a reason", `{"allowed":false,"reason":"Not now!"}`: "no snake_case word", `{"allowed":`: "cannot be decoded",
	} {
		if _, err := p.Swap(t.Context(), admitting(t, answer, answer), summarizers.SwapOptions{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	if _, err := p.Swap(t.Context(), admitting(t, `{"allowed":true}`, `{"allowed":false}`), summarizers.SwapOptions{}); err != nil {
		t.Fatal(err)
	}
	request := &abi.AdmitRequest{ThreadID: "t"}
	for n := range 4 {
		if p.Version() == good {
			t.Fatalf("rolled back after %d answers", n)
		}
		if d, err := p.Admit(t.Context(), request); err != nil || d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		if n == 2 {
			break
		}
	}
	if p.Version() != good || m.Stats().Rollbacks != 1 {
		t.Errorf("version %s, %+v", p.Version(), m.Stats())
	}
	// Now there is a request that the policy in use has answered.
	if _, err := p.Admit(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	_, err = p.Swap(t.Context(), admitting(t, `{"allowed":true}`, `{"allowed":false}`), summarizers.SwapOptions{})
	if err == nil || !strings.Contains(err.Error(), "trial: it fails on recorded request 1 of 4: the policy refused without a reason") {
		t.Errorf("error %v", err)
	}
	report, err := p.Swap(t.Context(), admitting(t, `{"allowed":true}`, `{"allowed":true}`), summarizers.SwapOptions{})
	if err != nil || len(report.Requests) != 4 || report.Requests[0].Old.Decision != abi.ReasonNoPreparation || report.Requests[0].New.Decision != abi.ReasonAllowed {
		t.Errorf("%+v, %v", report, err)
	}
}

// admitting is an admission policy with one answer for the sample and another for the rest.
func admitting(t *testing.T, sample, rest string) host.Spec {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "admit.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for place, answer := range map[string]string{
		"................the answer to the sample........................": sample,
		"................the answer to all others........................": rest,
	} {
		if !bytes.Contains(b, []byte(place)) {
			t.Fatalf("%q is not in the module", place)
		}
		b = bytes.ReplaceAll(b, []byte(place), fmt.Appendf(nil, "%-64s", answer))
	}
	return host.Spec{Wasm: b}
}
