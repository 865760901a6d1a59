package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestPeers holds behaviours of the suites of Extism's own hosts (go-sdk, the Rust
// runtime, js-sdk) that are not about one of go-sdk's modules alone. docs/conformance.md
// lists all of them, and where this host differs on purpose.
func TestPeers(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		t.Run("many_calls", func(t *testing.T) { t.Parallel(); peersManyCalls(t, e) })
		t.Run("many_modules", func(t *testing.T) { t.Parallel(); peersManyModules(t, e) })
		t.Run("exit_codes", func(t *testing.T) { t.Parallel(); peersExitCodes(t, e) })
		t.Run("every_size", func(t *testing.T) { t.Parallel(); peersEverySize(t, e) })
		t.Run("contexts", func(t *testing.T) { t.Parallel(); peersContexts(t, e) })
		t.Run("memory", func(t *testing.T) { t.Parallel(); peersMemory(t, e) })
		t.Run("after_a_trap", func(t *testing.T) { t.Parallel(); peersAfterTrap(t, e) })
	})
}

// peersManyCalls makes three calls from each of 300 goroutines.
func peersManyCalls(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: peer(t, "count_vowels"), Limits: host.Limits{Timeout: time.Minute}})
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			for range 3 {
				out, err := m.Call(t.Context(), "count_vowels", []byte("hello world"))
				if err != nil || string(out) != `{"count":3,"total":3,"vowels":"aeiouAEIOU"}` {
					t.Errorf("%s, %v", out, err)
				}
			}
		})
	}
	wg.Wait()
}

// peersManyModules loads the same binary many times at once; nothing of one is
// seen in another.
func peersManyModules(t *testing.T, e string) {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
	path := peer(t, "count_vowels")
	gate := make(chan struct{}, 4) // a compilation takes memory
	var wg sync.WaitGroup
	for n := range 40 {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			m, err := h.Load(t.Context(), host.Spec{
				Name: fmt.Sprintf("vowels %d", n), Path: path,
				Grants: host.Grants{Config: map[string]string{"vowels": fmt.Sprintf("%c", 'a'+n%26)}},
			})
			if err != nil {
				t.Error(err)
				return
			}
			for range 2 {
				out, err := m.Call(t.Context(), "count_vowels", fmt.Appendf(nil, "%c%c", 'a'+n%26, 'a'+n%26))
				want := fmt.Sprintf(`{"count":2,"total":2,"vowels":"%c"}`, 'a'+n%26)
				if err != nil || string(out) != want {
					t.Errorf("%s, %v; want %s", out, err, want)
				}
			}
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func peersExitCodes(t *testing.T, e string) {
	t.Helper()
	for text, code := range map[string]uint32{"-1": 0xffffffff, "abc": 1, "": 2} {
		grants := host.Grants{Config: map[string]string{"code": text}}
		if text == "" {
			grants.Config = nil
		}
		_, err := load(t, e, host.Spec{Path: peer(t, "exit"), Grants: grants}).Call(t.Context(), "_start", nil)
		if trap := wantTrap(t, err, host.TrapExit); trap.ExitCode != code {
			t.Errorf("config %q: exit code %#x, want %#x", text, trap.ExitCode, code)
		}
	}
}

// peersEverySize echoes every size up to 65,540 bytes in bulk, and, word by word,
// every size near a power of two and a sample of the others.
func peersEverySize(t *testing.T, e string) {
	t.Helper()
	const most = 65540
	in := make([]byte, most)
	for i := range in {
		in[i] = byte(i*31 + i>>7)
	}
	step := map[string]int{hosttest.Native: 1, hosttest.Extism: 97}[e]
	if testing.Short() {
		step *= 89
	}
	bulk := load(t, e, host.Spec{Path: wat("echo"), Limits: host.Limits{Timeout: time.Minute}})
	words := load(t, e, host.Spec{Path: wat("echo_pdk"), Limits: host.Limits{Timeout: time.Minute}})
	check := func(m *host.Module, n int) {
		out, err := m.Call(t.Context(), "echo", in[:n])
		if err != nil || !bytes.Equal(out, in[:n]) || out == nil {
			t.Errorf("%s: %d bytes came back as %d, %v", m.Name(), n, len(out), err)
		}
	}
	for n := 0; n <= most; n += step {
		check(bulk, n)
	}
	for n := 0; n <= most; n += 61 * step {
		check(words, n)
	}
	for size := 1; size <= 1<<16; size *= 2 {
		for n := max(0, size-3); n <= min(most, size+3); n++ {
			check(words, n)
		}
	}
}

// peersContexts cancels the context of a load, which must not touch later calls,
// and that of a call, which ends it.
func peersContexts(t *testing.T, e string) {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
	loading, cancel := context.WithCancel(t.Context())
	m, err := h.Load(loading, host.Spec{
		Path: peer(t, "sleep"), Limits: host.Limits{Timeout: time.Minute},
		Grants: host.Grants{Clock: true, Config: map[string]string{"duration": "0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := m.Call(t.Context(), "run_test", nil); err != nil {
		t.Errorf("after the load's context was cancelled: %v", err)
	}
	if _, err := h.Load(loading, host.Spec{Path: peer(t, "sleep")}); !errors.Is(err, context.Canceled) {
		t.Errorf("a load with a cancelled context: %v", err)
	}
	spin := load(t, e, host.Spec{Path: wat("spin"), Limits: host.Limits{Timeout: time.Minute, Instances: 1}})
	ctx, stop := context.WithCancel(t.Context())
	ended := occupy(ctx, t, spin)
	stop()
	err = <-ended
	if trap := wantTrap(t, err, host.TrapCancelled); !errors.Is(trap, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
}

// peersMemory bounds what the kernel of a guest may hold.
func peersMemory(t *testing.T, e string) {
	t.Helper()
	in := bytes.Repeat([]byte("x"), 900_000)
	fits := load(t, e, host.Spec{Path: wat("echo_pdk"), Limits: host.Limits{MemoryPages: 64, InputBytes: 1 << 20, OutputBytes: 1 << 20, Timeout: time.Minute}})
	call(t, fits, "echo", string(in), string(in))
	small := load(t, e, host.Spec{Path: wat("echo_pdk"), Limits: host.Limits{MemoryPages: 17, InputBytes: 500_000, OutputBytes: 1 << 20, Timeout: time.Minute}})
	for n, ok := range map[int]bool{100_000: true, 400_000: true, 500_001: false} {
		out, err := small.Call(t.Context(), "echo", in[:n])
		switch {
		case !ok && !errors.Is(err, host.ErrInputTooLarge):
			t.Errorf("%d bytes: %v", n, err)
		case ok && err == nil && bytes.Equal(out, in[:n]):
		case ok && err == nil && e == hosttest.Extism:
			// Input and output together are more than the kernel has. The guest does not
			// look at what alloc answers, and the kernel of go-sdk lets it write to block 0.
			t.Logf("%d bytes came back as %d, without an error", n, len(out))
		case ok:
			if _, trapped := errors.AsType[*host.TrapError](err); !trapped {
				t.Errorf("%d bytes came back as %d, %v", n, len(out), err)
			}
		}
	}
}

// peersAfterTrap calls a module again and again after it trapped: each call is as
// the first one, and a trap is never a success.
func peersAfterTrap(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("unreachable"), Limits: host.Limits{Instances: 1}})
	for range 5 {
		out, err := m.Call(t.Context(), "run", nil)
		if trap := wantTrap(t, err, host.TrapFault); out != nil || trap.Detail != "unreachable at .inner() < .run() i32" {
			t.Errorf("%q, %v", out, err)
		}
		call(t, m, "ok", "", "")
	}
}
