package host_test

import (
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// stalls reads how long the collector had to wait until every thread had stopped:
// what a guest that does not leave native code would hold up.
type stalls struct{ before *metrics.Float64Histogram }

func readStalls() *metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64Histogram()
}

func watchStalls() stalls {
	h := readStalls()
	h.Counts = append([]uint64(nil), h.Counts...)
	return stalls{before: h}
}

// longest is the upper end of the last bucket that grew, and how many stops there
// were.
func (s stalls) longest() (time.Duration, int) {
	now := readStalls()
	longest, n := 0.0, 0
	for i, count := range now.Counts {
		if grown := count - s.before.Counts[i]; grown > 0 {
			n += int(grown)
			if longest = now.Buckets[i+1]; math.IsInf(longest, 1) {
				longest = now.Buckets[i]
			}
		}
	}
	return time.Duration(longest * float64(time.Second)), n
}

// BenchmarkEngine_collector collects again and again while a guest spins on each
// processor, and while a loop in Go does.
func BenchmarkEngine_collector(b *testing.B) {
	m := load(b, hosttest.Native, host.Spec{Path: wat("spin"), Limits: host.Limits{Timeout: time.Hour, Fuel: math.MaxInt64}})
	collect := func(spin func(ctx context.Context)) (longest, each time.Duration) {
		ctx, stop := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() { spin(ctx) })
		}
		watch, start := watchStalls(), time.Now()
		const times = 20
		for range times {
			runtime.GC()
		}
		each = time.Since(start) / times
		longest, _ = watch.longest()
		stop()
		wg.Wait()
		return longest, each
	}
	var guest, loop, guestEach, loopEach []float64
	for b.Loop() {
		l, e := collect(func(ctx context.Context) { _, _ = m.Call(ctx, "run", nil) })
		guest, guestEach = append(guest, l.Seconds()*1e3), append(guestEach, e.Seconds()*1e3)
		l, e = collect(func(ctx context.Context) {
			for ctx.Err() == nil {
			}
		})
		loop, loopEach = append(loop, l.Seconds()*1e3), append(loopEach, e.Seconds()*1e3)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(guest), "guest-stop-ms")
	b.ReportMetric(slices.Max(guest), "guest-worst-ms")
	b.ReportMetric(median(loop), "go-stop-ms")
	b.ReportMetric(median(guestEach), "guest-collection-ms")
	b.ReportMetric(median(loopEach), "go-collection-ms")
}

// BenchmarkEngine_parallel has two goroutines make as many calls each as one.
func BenchmarkEngine_parallel(b *testing.B) {
	m := load(b, hosttest.Native, host.Spec{Path: wat("dirty"), Limits: host.Limits{Instances: 2}})
	const calls = 200
	work := func() {
		for range calls {
			if _, err := m.Call(b.Context(), "work", nil); err != nil {
				b.Error(err)
			}
		}
	}
	var one, two []float64
	for b.Loop() {
		start := time.Now()
		work()
		one = append(one, time.Since(start).Seconds())
		start = time.Now()
		var wg sync.WaitGroup
		wg.Go(work)
		wg.Go(work)
		wg.Wait()
		two = append(two, time.Since(start).Seconds())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(2*median(one)/median(two), "times-one")
}
