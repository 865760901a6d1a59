package compaction_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// grown is a thread of n rounds whose older part is compacted, with room for
// more.
func grown(b *testing.B, n int) (*desk, *compaction.Compactor, []abi.Message) {
	b.Helper()
	d := newDesk()
	c := d.at(b, says("the build is fixed"), func(cfg *compaction.Config) {
		cfg.Policy = compaction.Policy{WindowTokens: 40_000, ThresholdTokens: 20_000, KeepRecentTokens: 5_000}
		cfg.Quota.Cooldown = time.Hour
	})
	log := make([]abi.Message, 0, 4*n)
	log = append(log, rounds(n)...)
	if !c.Consider(b.Context(), thread, log) {
		b.Fatal("the benchmark's thread did not start")
	}
	for _, notice := range d.run() {
		c.Consume(thread, log, notice)
	}
	if c.Total(thread) != 1 {
		b.Fatalf("the benchmark's thread was not compacted: %+v", d.events)
	}
	return d, c, log
}

// BenchmarkStep is what one step of a run pays: one round is appended, the view
// is taken twice, a compaction is considered, a foreign notice comes by.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{500, 50_000} {
		b.Run(fmt.Sprintf("messages=%d", 2*n), func(b *testing.B) {
			other := abi.Notice{Kind: abi.NoticeCompleted, TaskID: "somebody"}
			var c *compaction.Compactor
			var log []abi.Message
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i%256 == 0 {
					b.StopTimer()
					_, c, log = grown(b, n)
					b.StartTimer()
				}
				call := fmt.Sprintf("x%d", i)
				log = append(log, calls("m"+call, call), result("r"+call, call, "ok"))
				c.Consume(thread, log, other)
				c.View(thread, log)
				c.Consider(b.Context(), thread, log)
				c.View(thread, log)
				i++
			}
		})
	}
}

// BenchmarkConsider is a step whose compaction is refused for the cooldown.
func BenchmarkConsider(b *testing.B) {
	for _, n := range []int{500, 50_000} {
		b.Run(fmt.Sprintf("refused/messages=%d", 2*n), func(b *testing.B) {
			d, c, log := grown(b, n)
			log = append(log, rounds(500)[1:]...)
			for i := len(log) - 1000; i < len(log); i++ {
				log[i].ID = "z" + log[i].ID
			}
			b.ReportAllocs()
			for b.Loop() {
				c.Consider(b.Context(), thread, log)
			}
			if d.started() != 1 {
				b.Fatal("a compaction was started")
			}
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{500, 50_000} {
		b.Run(fmt.Sprintf("messages=%d", 2*n), func(b *testing.B) {
			log := rounds(n)
			p := compaction.Policy{KeepRecentTokens: 5_000, KeepRecentMessages: 2, MinRangeTokens: 1024}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := compaction.Plan(log, nil, p); !ok {
					b.Fatal("nothing to plan")
				}
			}
		})
	}
}

func BenchmarkView(b *testing.B) {
	for _, n := range []int{500, 50_000} {
		b.Run(fmt.Sprintf("messages=%d", 2*n), func(b *testing.B) {
			log := rounds(n)
			m := &compaction.Marker{ID: "m", FromID: "q", ToID: log[len(log)-11].ID, Summary: "short"}
			b.ReportAllocs()
			for b.Loop() {
				if len(compaction.View(log, m)) > 20 {
					b.Fatal("the marker was not applied")
				}
			}
		})
	}
}

// BenchmarkSwap is a whole compaction; swap-ns is the part that a run waits for.
func BenchmarkSwap(b *testing.B) {
	for _, n := range []int{500, 50_000} {
		b.Run(fmt.Sprintf("messages=%d", 2*n), func(b *testing.B) {
			d := newDesk()
			c := d.at(b, says("the build is fixed"), nil)
			log := rounds(n)
			var swaps time.Duration
			for b.Loop() {
				if !c.Consider(b.Context(), thread, log) {
					b.Fatal("not started")
				}
				notices := d.run()
				start := time.Now()
				c.Consume(thread, log, notices[0])
				swaps += time.Since(start)
				if !c.Undo(thread) {
					b.Fatal("not swapped")
				}
				c.Request(thread, "") // an undo holds the next one back
			}
			b.ReportMetric(float64(swaps.Nanoseconds())/float64(b.N), "swap-ns/op")
		})
	}
}

func BenchmarkEstimate(b *testing.B) {
	log := rounds(2_000)
	var size int64
	for i := range log {
		size += int64(len(log[i].Text()))
	}
	b.SetBytes(size)
	for b.Loop() {
		compaction.Estimate(log)
	}
}

func BenchmarkScore(b *testing.B) {
	source := real600(b)
	s := compaction.NewScorer()
	b.SetBytes(600 << 10)
	b.ReportAllocs()
	for b.Loop() {
		s.Score(source, nil, "internal/cli/run.go and a few words")
	}
}

func real600(tb testing.TB) []abi.Message {
	tb.Helper()
	var log []abi.Message
	for i, size := 0, 0; size < 600<<10; i++ {
		text := fmt.Sprintf("open internal/cli/run%d.go: runStep(ctx) returned %d, see https://example.org/issue/%d\nError: line %d: undefined max_tokens\n%s\n",
			i%50, i*7919, i%20, i, words(60))
		log = append(log, assistant(fmt.Sprintf("m%d", i), text))
		size += len(text)
	}
	return log
}
