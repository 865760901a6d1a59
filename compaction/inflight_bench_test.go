package compaction_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// stepper runs an agent step by step, with a compaction in flight or without one.
type stepper struct {
	a    *agent.Agent
	c    *compaction.Compactor
	n    int
	free chan struct{}
}

// newStepper makes a thread of n messages whose model answers after a while.
func newStepper(b *testing.B, n int, inFlight bool) *stepper {
	b.Helper()
	s := &stepper{free: make(chan struct{})}
	tasks, err := background.New(background.Config{Ledger: passing{give: func(ctx context.Context, id string, notice abi.Notice) error {
		return s.a.Deliver(ctx, id, notice)
	}}})
	if err != nil {
		b.Fatal(err)
	}
	policy := compaction.Policy{WindowTokens: 1 << 40, ReserveTokens: 1, ThresholdTokens: 1 << 39, KeepRecentTokens: 1, SummaryTokens: 2000}
	if inFlight {
		policy.ThresholdTokens = 10_000
	}
	s.c = newCompactor(b, compaction.Config{
		Policy: policy, Spawn: tasks.Housekeep, Quota: compaction.Quota{Timeout: time.Hour},
		Summarizer: scripted(func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
			summary, err := compaction.Ledger{}.Summarize(ctx, r)
			select {
			case <-s.free: // it stays in flight for as long as is measured
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return summary, err
		}),
	})
	quiet, err := phases.New(phases.Config{})
	if err != nil {
		b.Fatal(err)
	}
	s.a, err = agent.New(agent.Config{Profile: agent.Profile{Phases: quiet, Model: model(func(llm.Request) (*abi.Response, error) {
		<-time.After(2 * time.Millisecond)
		return answers("ok"), nil
	})}, Compactor: s.c})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.a.Append(b.Context(), thread, rounds(n/2)...); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		close(s.free)
		_ = tasks.Close(context.Background())
	})
	s.step(b)
	if s.c.Pending(thread) != inFlight {
		b.Fatalf("in flight %v, want %v", !inFlight, inFlight)
	}
	return s
}

func (s *stepper) step(b *testing.B) time.Duration {
	b.Helper()
	s.n++
	start := time.Now()
	_, err := s.a.Run(b.Context(), agent.Request{ThreadID: thread, Messages: []abi.Message{user(fmt.Sprintf("step%d", s.n), "go")}})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkStepInFlight compares the steps of a run whose compaction is in flight
// with those of one without: ratio is of the medians, taken in turn.
func BenchmarkStepInFlight(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			with, without := newStepper(b, n, true), newStepper(b, n, false)
			var slow, fast []time.Duration
			for b.Loop() {
				slow, fast = append(slow, with.step(b)), append(fast, without.step(b))
			}
			slices.Sort(slow)
			slices.Sort(fast)
			m := len(slow) / 2
			b.ReportMetric(float64(slow[m])/float64(fast[m]), "ratio")
			b.ReportMetric(float64(fast[m].Nanoseconds()), "step-ns")
		})
	}
}
