package host_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// BenchmarkHostile runs each guest that does not end, and reports how late control
// comes back after its deadline, how long collections take meanwhile, how long the
// collector waits for threads to stop, and how long a call of another module takes.
// On a machine with nothing else to do the goals are 20 ms late and 50 ms for a
// collection; CI only sees that it runs.
func BenchmarkHostile(b *testing.B) {
	neighbour := load(b, hosttest.Native, host.Spec{Path: wat("echo")})
	h := newHost(b, host.Config{Engine: hosttest.Engine(hosttest.Native)})
	for _, a := range attacks() {
		hit := a.prepare(b, h)
		b.Run(a.guest+"_"+a.export, func(b *testing.B) { a.measure(b, hit, neighbour) })
	}
}

// measure attacks once for each iteration. Collections and the neighbour's calls
// come every few milliseconds, as in a program that is at work but not full.
func (a attack) measure(b *testing.B, hit strike, neighbour *host.Module) {
	b.Helper()
	var late, collections, stops, calls []float64
	for b.Loop() {
		done := make(chan struct{})
		var wg sync.WaitGroup
		every := func(times *[]float64, do func()) {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(5 * time.Millisecond):
					}
					start := time.Now()
					do()
					*times = append(*times, float64(time.Since(start).Microseconds())/1e3)
				}
			})
		}
		watch := watchStalls()
		every(&collections, runtime.GC)
		every(&calls, func() {
			if _, err := neighbour.Call(b.Context(), "echo", []byte("still here")); err != nil {
				b.Error(err)
			}
		})
		start := time.Now()
		if err := hit(b.Context()); err == nil {
			b.Error("the guest came to an end")
		}
		late = append(late, float64((time.Since(start)-attackTime).Microseconds())/1e3)
		close(done)
		wg.Wait()
		longest, _ := watch.longest()
		stops = append(stops, longest.Seconds()*1e3)
	}
	b.ReportMetric(0, "ns/op")
	for name, values := range map[string][]float64{"late": late, "collection": collections, "stop": stops, "neighbour": calls} {
		if len(values) > 0 {
			b.ReportMetric(median(values), name+"-ms")
			b.ReportMetric(slices.Max(values), name+"-worst-ms")
		}
	}
}
