package signals_test

import (
	"fmt"
	"testing/fstest"
	"time"

	"github.com/mortise-dev/mortise/compaction/signals"
)

// What a sampler observes of the model's provider, and finds out of the machine, is
// what admission is decided by: compaction.Config.Signals is its Sample.
func Example() {
	s, err := signals.New(signals.Config{
		MaxLatency: time.Second,
		Root:       fstest.MapFS{"proc/meminfo": {Data: []byte("MemAvailable: 524288 kB\n")}},
	})
	if err != nil {
		panic(err)
	}
	for range 10 {
		s.Observe(3*time.Second, false)
	}
	now := s.Sample()
	fmt.Println("memory:", *now.Memory.AvailableBytes>>20, "MiB, pressure:", now.Memory.Pressure)
	fmt.Println("provider:", *now.Provider.P95LatencyMS, "ms, degraded:", now.Provider.Degraded)
	// Output:
	// memory: 512 MiB, pressure: false
	// provider: 3000 ms, degraded: true
}
