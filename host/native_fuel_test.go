package host_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// rounds is the input of fuel.wat, and loopCost what its count export costs by the
// cost model of the meter: 8 instructions outside of the loop, 6 in each round, and
// 1 for the bytes that input_read copies.
func rounds(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) } //nolint:gosec // small

func loopCost(n int) int64 { return 9 + 6*int64(n) }

// fuelOf is the fuel of one call, and its error.
func fuelOf(ctx context.Context, m *host.Module, export string, input []byte) (int64, error) {
	before := m.Stats().Fuel
	_, err := m.Call(ctx, export, input)
	return m.Stats().Fuel - before, err
}

// busy loads the machine until stop is called, and counts its calls.
func busy(t *testing.T) (calls func() int64, stop func()) {
	t.Helper()
	m := load(t, hosttest.Native, host.Spec{Path: wat("spin"), Limits: host.Limits{Instances: 4, Timeout: 5 * time.Millisecond}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = m.Call(ctx, "run", nil) // it never ends well
			}
		})
	}
	return func() int64 { return m.Stats().Calls }, func() { cancel(); wg.Wait() }
}

// TestFuel_exact compares with the documented cost, within one slice and over many.
func TestFuel_exact(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, host.Spec{Path: wat("fuel"), Limits: host.Limits{Timeout: time.Minute}})
	for _, n := range []int{1, 2, 1000, 87_380, 87_381, 87_382, 1_000_000} {
		if used, err := fuelOf(t.Context(), m, "count", rounds(n)); err != nil || used != loopCost(n) {
			t.Errorf("%d rounds used %d units (%v), want %d", n, used, err, loopCost(n))
		}
	}
}

// TestFuel_limit gives exactly what a loop needs, and one unit less.
func TestFuel_limit(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)})
	for _, n := range []int{1, 1000, 87_381, 300_000} {
		for _, less := range []int64{0, 1} {
			limit := loopCost(n) - less
			m, err := h.Load(t.Context(), host.Spec{Path: wat("fuel"), Limits: host.Limits{Timeout: time.Minute, Fuel: limit}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a limit is for a call, not for an instance
				used, err := fuelOf(t.Context(), m, "count", rounds(n))
				if used != loopCost(n) {
					t.Errorf("%d rounds with %d units used %d", n, limit, used)
				}
				if less == 0 && err != nil {
					t.Errorf("%d rounds with just enough fuel: %v", n, err)
				}
				if less == 0 {
					continue
				}
				trap := wantTrap(t, err, host.TrapFuel)
				if want := fmt.Sprintf("used up its %d units of fuel", limit); trap.Detail != want {
					t.Errorf("detail %q, want %q", trap.Detail, want)
				}
			}
		}
	}
}

// TestFuel_hostWork has the host copy: it is counted to the unit, whether it is taken
// from the counter at once or later, and a unit too few ends the call each time.
func TestFuel_hostWork(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)})
	open := func(fuel int64) *host.Module {
		m, err := h.Load(t.Context(), host.Spec{Path: wat("echo"), Limits: host.Limits{Timeout: time.Minute, Fuel: fuel}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open(0)
	empty, err := fuelOf(t.Context(), m, "echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{64, 4 << 10, 192 << 10} {
		input, want := make([]byte, n), empty+2*int64(n)/64
		enough, less := open(want), open(want-1)
		for range 3 { // the first grants a slice, later ones use what is left of it
			for _, m := range []*host.Module{m, enough} {
				if used, err := fuelOf(t.Context(), m, "echo", input); err != nil || used != want {
					t.Errorf("%d bytes used %d units (%v), want %d", n, used, err, want)
				}
			}
			_, err := less.Call(t.Context(), "echo", input)
			_ = wantTrap(t, err, host.TrapFuel)
		}
	}
}

// TestFuel_sameUnderLoad runs the same calls alone and alongside spinning guests: the
// fuel of a call that ends, and the point at which one traps.
func TestFuel_sameUnderLoad(t *testing.T) {
	t.Parallel()
	// A dot costs 6 for each of 1,000 rounds and 11 around them: const and set, the
	// inner loop, four constants, call, drop, br and end. fd_write takes 1 for its
	// vector and 1 for the byte.
	const limit, dot = 3_000_000, 6*1000 + 11 + 2
	run := func() string {
		m := load(t, hosttest.Native, host.Spec{Path: wat("fuel"), Limits: host.Limits{Timeout: time.Minute, Fuel: limit}})
		var out strings.Builder
		for range 5 {
			used, err := fuelOf(t.Context(), m, "dots", nil)
			trap := wantTrap(t, err, host.TrapFuel)
			if n := strings.Count(trap.Detail, "."); n != limit/dot {
				t.Errorf("stopped after %d dots, want %d", n, limit/dot)
			}
			fmt.Fprintf(&out, "%d %s\n", used, trap.Detail)
			used, err = fuelOf(t.Context(), m, "count", rounds(250_000))
			fmt.Fprintf(&out, "%d %v\n", used, err)
		}
		return out.String()
	}
	alone := run()
	calls, stop := busy(t)
	defer stop()
	runs := 0
	for ; calls() < 50; runs++ {
		if loaded := run(); loaded != alone {
			t.Fatalf("alone:\n%s\nunder load:\n%s", alone, loaded)
		}
	}
	t.Logf("the same in %d runs beside %d other calls", runs, calls())
	if lines := strings.Split(strings.TrimSpace(alone), "\n"); len(lines) != 10 || lines[0] != lines[8] || lines[1] != lines[9] {
		t.Errorf("repeated calls differ:\n%s", alone)
	}
}
