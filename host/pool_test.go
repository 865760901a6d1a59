package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestModule_Call_concurrent runs 100 goroutines on 3 instances; some of their
// calls trap.
func TestModule_Call_concurrent(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("echo"), Limits: host.Limits{Instances: 3, Timeout: time.Minute}})
		bad := load(t, e, host.Spec{Path: wat("unreachable"), Limits: host.Limits{Instances: 3}})
		var wg sync.WaitGroup
		for n := range 100 {
			wg.Go(func() {
				for k := range 5 {
					in := strings.Repeat(fmt.Sprintf("%d.%d ", n, k), 1+n)
					out, err := m.Call(t.Context(), "echo", []byte(in))
					if err != nil || string(out) != in {
						t.Errorf("%d.%d: %q, %v", n, k, out, err)
					}
				}
				if _, err := bad.Call(t.Context(), "run", nil); err == nil {
					t.Error("no trap")
				}
			})
		}
		wg.Wait()
		if s := m.Stats(); s.Calls != 500 || s.Failures != 0 || s.Instances < 1 || s.Instances > 3 || s.Replaced != 0 || s.Time <= 0 {
			t.Errorf("%+v", s)
		}
		if s := bad.Stats(); s.Calls != 100 || s.Traps != 100 || s.Replaced != 100 || s.Instances != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// occupy starts a call that spins and returns when it has the only instance.
func occupy(ctx context.Context, t *testing.T, m *host.Module) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := m.Call(ctx, "run", nil)
		ended <- err
	}()
	// A call with a short patience does not get the only instance, which was there before and is held. It may also
	// be too slow to ask for it, or to use it, and cost it.
	for {
		there := m.Stats().Instances == 1
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		_, err := m.Call(short, "ok", nil)
		cancel()
		var trap *host.TrapError
		switch {
		case err == nil, errors.As(err, &trap):
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatal(err)
		case there && host.Held(m) == 1:
			return ended
		}
	}
}

func TestModule_Call_waiting(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("spin"), Limits: host.Limits{Instances: 1, Timeout: time.Minute}})
		spinning, stop := context.WithCancel(t.Context())
		ended := occupy(spinning, t, m)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			_, err := m.Call(ctx, "ok", nil)
			waited <- err
		}()
		cancel()
		err := <-waited
		var trap *host.TrapError
		if !errors.Is(err, context.Canceled) || errors.As(err, &trap) {
			t.Errorf("a cancelled wait: %v", err)
		}
		stop()
		err = <-ended
		_ = wantTrap(t, err, host.TrapCancelled)
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a cancelled call: %v", err)
		}
		call(t, m, "ok", "", "")
		if _, err := m.Call(ctx, "ok", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a call with a cancelled context: %v", err)
		}
	})
}

func TestModule_Call_callersDeadline(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("spin"), Limits: host.Limits{Timeout: time.Minute}})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := m.Call(ctx, "run", nil)
		wantDeadline(t, err)
		want := `host: module "spin" export "run": deadline: out of time`
		if err.Error() != want || time.Since(start) > 30*time.Second {
			t.Errorf("after %s: %v, want %s", time.Since(start), err, want)
		}
	})
}

func TestModule_Close_waitsForCalls(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("spin"), Limits: host.Limits{Instances: 1, Timeout: 500 * time.Millisecond}})
		ended := occupy(t.Context(), t, m)
		waiting := make(chan error, 1)
		go func() {
			_, err := m.Call(t.Context(), "ok", nil)
			waiting <- err
		}()
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			wantDeadline(t, err)
		case <-time.After(time.Minute):
			t.Fatal("Close returned before the call")
		}
		if err := <-waiting; err != nil && !errors.Is(err, host.ErrClosed) {
			t.Errorf("a waiting call: %v", err)
		}
		if s := m.Stats(); s.Instances != 0 {
			t.Errorf("%d instances are left", s.Instances)
		}
	})
}

func TestModule_Close_interrupts(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("spin"), Limits: host.Limits{Instances: 1, Timeout: time.Minute}})
		ended := occupy(t.Context(), t, m)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := m.Close(ctx)
		want := `host: close module "spin": 1 calls in flight were interrupted: context canceled`
		if err == nil || err.Error() != want || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %s", err, want)
		}
		err = <-ended
		_ = wantTrap(t, err, host.TrapCancelled)
		if !errors.Is(err, host.ErrClosed) {
			t.Errorf("an interrupted call: %v", err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if s := m.Stats(); s.Instances != 0 {
			t.Errorf("%d instances are left", s.Instances)
		}
	})
}

func TestModule_Call_limits(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("echo"), Limits: host.Limits{InputBytes: 10}})
		_, err := m.Call(t.Context(), "echo", make([]byte, 11))
		want := `host: module "echo" export "echo": input too large: 11 bytes of 10`
		if !errors.Is(err, host.ErrInputTooLarge) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		call(t, m, "echo", "0123456789", "0123456789")
		_, err = m.Call(t.Context(), "no\nsuch", nil)
		want = `host: module "echo" export "no\\nsuch": no such export`
		if !errors.Is(err, host.ErrNoExport) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		// An input of the largest size allowed passes through the kernel.
		big := load(t, e, host.Spec{Path: wat("echo"), Limits: host.Limits{MemoryPages: 400, InputBytes: 8 << 20, OutputBytes: 8 << 20, Timeout: time.Minute}})
		in := make([]byte, 8<<20)
		in[len(in)-1] = 1
		out, err := big.Call(t.Context(), "echo", in)
		if err != nil || len(out) != len(in) || out[len(out)-1] != 1 {
			t.Errorf("8 MiB came back as %d, %v", len(out), err)
		}
		// Clearing that much would make the next call slow.
		if s := big.Stats(); e == hosttest.Extism && s.Replaced != 1 {
			t.Errorf("%+v", s)
		}
	})
}
