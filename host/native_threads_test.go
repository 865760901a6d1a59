package host_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestThreads runs a module with a shared memory and a single thread: metered, in a
// fresh state, and stopped when it waits.
func TestThreads(t *testing.T) {
	t.Parallel()
	onMemories(t, func(t *testing.T, open func(string, host.Limits) *host.Module) {
		t.Helper()
		m := open("threads", host.Limits{Timeout: time.Minute})
		if info := m.Info(); !info.Metered || len(info.Notes) > 0 {
			t.Errorf("metered %t, notes %q", info.Metered, info.Notes)
		}
		for range 3 {
			for _, export := range []string{"count", "notify", "grow"} {
				if _, err := m.Call(t.Context(), export, nil); err != nil {
					t.Errorf("%s: %v", export, err)
				}
			}
			call(t, m, "write", "", "ab")
		}
		impatient := open("threads", host.Limits{Timeout: 50 * time.Millisecond})
		for _, export := range []string{"spin", "wait_hour"} {
			begin := time.Now()
			_, err := impatient.Call(t.Context(), export, nil)
			if _ = wantTrap(t, err, host.TrapDeadline); time.Since(begin) > 10*time.Second {
				t.Errorf("%s was stopped after %v", export, time.Since(begin))
			}
		}
		_, err := m.Call(t.Context(), "wait_forever", nil)
		if trap := wantTrap(t, err, host.TrapFault); !strings.HasPrefix(trap.Detail, "unreachable at ") {
			t.Errorf("%v", trap)
		}
		if s := m.Stats(); s.Fuel == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestThreads_refused bounds what a shared memory reserves, and says so on the
// engine that could not stop a guest that waits.
func TestThreads_refused(t *testing.T) {
	t.Parallel()
	shared := func(limits ...any) []byte { return wasmOf(sec(sMemory, enc(limits...))) }
	for _, c := range []struct {
		e    string
		bin  []byte
		want string
		kind error
	}{
		{hosttest.Native, shared(3, 1, leb(65_536)), "has a shared memory of up to 65536 pages and may use 1024; raise Limits.MemoryPages, or link it with a smaller --max-memory", host.ErrLimit},
		{hosttest.Native, shared(2, 1), "has a shared memory without a maximum; link it with --max-memory", host.ErrInvalid},
		{hosttest.Extism, watBytes(t, "threads"), "is refused by the engine: section memory: shared memory requested but threads feature not enabled", host.ErrInvalid},
	} {
		_, err := newHost(t, host.Config{Engine: hosttest.Engine(c.e)}).Load(t.Context(), host.Spec{Name: "shared", Wasm: c.bin})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.e, err, c.want)
		}
	}
}
