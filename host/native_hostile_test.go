package host_test

import (
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
)

// loose is how late control may come back on a busy machine, and how long a
// collection or a neighbour's call may take. What is aimed at is 20 ms and 50 ms;
// the measured numbers are logged.
const loose = 500 * time.Millisecond

// attack is a guest that does not end.
type attack struct {
	guest, export string
	input         int
	limits        host.Limits
}

func attacks() []attack {
	large := host.Limits{MemoryPages: 16384}
	return []attack{
		{"spin", "run", 0, host.Limits{}},
		{"stubborn", "fib", 0, host.Limits{}},
		{"stubborn", "br_table", 0, host.Limits{}},
		{"stubborn", "br_table_back", 0, host.Limits{}},
		{"stubborn", "tail", 0, host.Limits{}},
		{"stubborn", "tail_indirect", 0, host.Limits{}},
		{"stubborn", "grow", 0, host.Limits{}},
		{"fill_huge", "fill", 0, large},
		{"fill_huge", "copy", 0, large},
		{"table_grow", "slowly", 0, host.Limits{}},
		{"host_loops", "random", 0, host.Limits{}},
		{"host_loops", "vectors", 0, host.Limits{}},
		{"host_loops", "poll", 0, host.Limits{}},
		{"host_loops", "read", 8 << 20, host.Limits{}},
		{"host_loops", "write", 0, host.Limits{}},
		{"host_loops", "alloc", 0, host.Limits{}},
		{"host_loops", "variables", 0, host.Limits{}},
		{"host_loops", "log", 0, host.Limits{}},
	}
}

// watch collects garbage and calls a neighbour until stop is called, and returns
// the longest that either took.
func watch(t *testing.T) (stop func() (gc, neighbour time.Duration)) {
	t.Helper()
	m := load(t, host.EngineNative, host.Spec{Path: wat("echo"), Limits: host.Limits{Timeout: time.Minute}})
	done := make(chan struct{})
	var wg sync.WaitGroup
	var gc, neighbour time.Duration
	every := func(worst *time.Duration, do func()) {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				start := time.Now()
				do()
				*worst = max(*worst, time.Since(start))
			}
		})
	}
	every(&gc, runtime.GC)
	every(&neighbour, func() {
		if _, err := m.Call(t.Context(), "echo", []byte("still here")); err != nil {
			t.Errorf("the neighbour: %v", err)
		}
	})
	return func() (time.Duration, time.Duration) { close(done); wg.Wait(); return gc, neighbour }
}

// TestNative_stubborn stops every attack at its deadline, while the collector and a
// neighbour go on. The attacks run one after the other.
func TestNative_stubborn(t *testing.T) {
	t.Parallel()
	const timeout = 150 * time.Millisecond
	var lines logBuffer
	h := newHost(t, host.Config{Engine: host.EngineNative, Logger: logger(&lines, slog.LevelInfo)})
	for _, a := range attacks() {
		a.limits.Timeout = timeout
		m, err := h.Load(t.Context(), host.Spec{Path: wat(a.guest), Limits: a.limits, Grants: host.Grants{Log: true}})
		if err != nil {
			t.Fatal(err)
		}
		stop := watch(t)
		start := time.Now()
		_, err = m.Call(t.Context(), a.export, make([]byte, a.input))
		late := time.Since(start) - timeout
		gc, neighbour := stop()
		t.Logf("%-10s %-13s %6.1f ms late, longest collection %5.1f ms, longest call of a neighbour %5.1f ms",
			a.guest, a.export, ms(late), ms(gc), ms(neighbour))
		var trap *host.TrapError
		if !errors.As(err, &trap) {
			t.Errorf("%s %s: %v", a.guest, a.export, err)
		}
		if late > loose || gc > loose || neighbour > loose {
			t.Errorf("%s %s: %s late, collection %s, neighbour %s", a.guest, a.export, late, gc, neighbour)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
