package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// yielding is a log that gives other goroutines a turn, so that a guest which logs
// may continue on another thread.
type yielding struct{}

func (yielding) Write(p []byte) (int, error) {
	runtime.Gosched()
	return len(p), nil
}

// addresses is an input for scatter.
func addresses(rng *rand.Rand, n int) []byte {
	out := make([]byte, 0, 4*n)
	for range n {
		out = binary.LittleEndian.AppendUint32(out, rng.Uint32N(8<<20))
	}
	return out
}

// TestNative_scattered writes to random pages, few and many, from several
// goroutines, while the collector and others keep the threads busy, and also from
// threads that end after the call and make room for new ones: each call must find the
// memory as the first one did.
func TestNative_scattered(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"mapped", "threads that end", "blind", "portable"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native), Logger: slog.New(slog.NewTextHandler(yielding{}, nil))})
			if mode == "portable" && !host.UsePortableMemory(h) {
				t.Fatal("the engine has no portable memory")
			}
			if mode == "blind" {
				host.UseBlindMemory(h)
			}
			m, err := h.Load(t.Context(), host.Spec{
				Path: wat("pages"), Limits: host.Limits{Instances: 2}, Grants: host.Grants{Capabilities: []host.Capability{log.Grant{}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			want, err := m.Call(t.Context(), "sum", nil)
			if err != nil {
				t.Fatal(err)
			}
			var busy, callers sync.WaitGroup
			var stop atomic.Bool
			busy.Go(func() {
				for !stop.Load() {
					runtime.GC()
					runtime.Gosched()
				}
			})
			for seed := range uint64(3) {
				call := m.Call
				if mode == "threads that end" {
					call = onThread(m.Call)
				}
				callers.Go(func() { scatter(t, call, rand.New(rand.NewPCG(seed, 1)), want) })
			}
			callers.Wait()
			stop.Store(true)
			busy.Wait()
		})
	}
}

// caller is Module.Call, or a wrapper of it.
type caller func(ctx context.Context, export string, input ...[]byte) ([]byte, error)

// onThread makes each call on a thread of its own, which ends with it.
func onThread(call caller) caller {
	return func(ctx context.Context, export string, input ...[]byte) (out []byte, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked
			out, err = call(ctx, export, input...)
		}()
		<-done
		return out, err
	}
}

func scatter(t *testing.T, call caller, rng *rand.Rand, want []byte) {
	t.Helper()
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		n := rng.IntN(20)
		switch round % 10 {
		case 7:
			n = 1800 // more pages than are kept
		case 8:
			n = 0
		}
		if _, err := call(t.Context(), "scatter", addresses(rng, n)); err != nil {
			t.Errorf("round %d: %v", round, err)
			return
		}
		if round%3 == 0 {
			if _, err := call(t.Context(), "peek", nil); err != nil {
				t.Error(err)
			}
		}
		if got, err := call(t.Context(), "sum", nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("round %d, after %d writes: % x, %v; want % x", round, n, got, err, want)
			return
		}
	}
}
