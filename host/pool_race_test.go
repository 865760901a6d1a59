package host_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestModule_Stats_underCalls looks at the statistics, which takes the slot that was
// used last, while callers wait for the only slot: none may be forgotten.
func TestModule_Stats_underCalls(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, host.Spec{Path: wat("generation"), Limits: host.Limits{Instances: 1}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a forgotten caller waits until then
	defer cancel()
	var looking, callers sync.WaitGroup
	var stop atomic.Bool
	looking.Go(func() {
		for !stop.Load() {
			_ = m.Stats()
		}
	})
	const each = 20_000
	for range 4 {
		callers.Go(func() {
			for range each {
				if _, err := m.Call(ctx, "ok", nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	stop.Store(true)
	looking.Wait()
	if s := m.Stats(); s.Calls != 4*each || s.Instances != 1 {
		t.Errorf("%+v", s)
	}
}

// TestModule_Swap_badUnderCalls swaps a broken generation in while callers fail it at
// once, so that it may be rolled back before Swap has returned. The one before must
// then take calls again.
func TestModule_Swap_badUnderCalls(t *testing.T) {
	t.Parallel()
	m := startSwapping(t, hosttest.Native, host.Limits{Instances: 4})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var callers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		callers.Go(func() {
			for !stop.Load() {
				_, _ = m.Call(ctx, "work", nil) // those of a broken generation trap
			}
		})
	}
	swaps := int64(200)
	if testing.Short() {
		swaps = 50
	}
	for n := range swaps {
		opts := host.SwapOptions{Watch: host.Watch{Calls: 2, MinCalls: 1, MaxFailures: 0.1}}
		if _, err := m.Swap(ctx, host.Spec{Wasm: generation(t, '2', '!')}, opts); err != nil {
			t.Fatal(err)
		}
		for m.Stats().Rollbacks <= n && ctx.Err() == nil {
			_, _ = m.Call(ctx, "work", nil)
		}
		if out, err := m.Call(ctx, "work", nil); err != nil || string(out) != "1" {
			t.Fatalf("after roll-back %d: %q, %v", n+1, out, err)
		}
	}
	stop.Store(true)
	callers.Wait()
}
