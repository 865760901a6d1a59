package host_test

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
)

// TestStats_time: the time of a module that is called a few times is the time of these calls.
func TestStats_time(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for _, calls := range []int{1, 2, 10, 64} {
			m := load(t, e, host.Spec{Path: wat("echo"), Limits: host.Limits{Instances: 1}})
			var wall time.Duration
			for range calls {
				start := time.Now()
				call(t, m, "echo", "hello", "hello")
				wall += time.Since(start)
			}
			if got := m.Stats().Time; got <= 0 || got > wall {
				t.Errorf("%d calls: %v, and they took %v", calls, got, wall)
			}
		}
	})
}

// TestStats_timeSampled: later calls are represented by one in 64, and none of them by a slow first one.
func TestStats_timeSampled(t *testing.T) {
	t.Parallel()
	const slow, quick = int64(time.Second), int64(time.Microsecond)
	for _, c := range []struct{ calls, want int64 }{
		{1, slow},
		{2, slow + quick},
		{64, slow + 63*quick},
		{65, slow + 63*quick},
		{127, slow + 63*quick},
		{128, slow + 127*quick},
		{1280, slow + 1279*quick},
	} {
		if got := host.TallyTimes(int(c.calls), func(n int) int64 { return map[bool]int64{true: slow, false: quick}[n == 0] }); got != c.want {
			t.Errorf("%d calls: %d ns, want %d", c.calls, got, c.want)
		}
	}
}
