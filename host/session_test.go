package host_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// sticky loads the counting guest with the grant.
func sticky(t *testing.T, e string, limits host.Limits) *host.Module {
	t.Helper()
	return load(t, e, host.Spec{Name: "counter", Path: wat("generation"), Limits: limits, Grants: host.Grants{Sticky: true}})
}

func wantCount(t *testing.T, s *host.Session, want string) {
	t.Helper()
	out, err := s.Call(t.Context(), "count", nil)
	if err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

func TestModule_Session(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := sticky(t, e, host.Limits{Instances: 1})
		a, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Global, memory and variable add up, for each session alone.
		wantCount(t, a, "1\x011")
		wantCount(t, a, "2\x022")
		wantCount(t, b, "1\x011")
		wantCount(t, a, "3\x033")
		if e == hosttest.Native { // the Extism engine keeps memory and globals anyway
			call(t, m, "count", "", "1\x011")
			call(t, m, "count", "", "1\x011")
		}
		_, err = b.Call(t.Context(), "trap", nil)
		_ = wantTrap(t, err, host.TrapFault)
		if _, err := b.Call(t.Context(), "count", nil); !errors.Is(err, host.ErrSessionLost) {
			t.Errorf("after a trap: %v", err)
		}
		wantCount(t, a, "4\x044")
		for range 2 {
			if err := errors.Join(a.Close(t.Context()), b.Close(t.Context())); err != nil {
				t.Error(err)
			}
		}
		if _, err := a.Call(t.Context(), "count", nil); !errors.Is(err, host.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if s := m.Stats(); s.Instances != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestModule_Session_refused(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Name: "counter", Path: wat("generation")})
		_, err := m.Session(t.Context())
		want := `host: module "counter": session: not granted; set Grants.Sticky`
		if !errors.Is(err, host.ErrNotGranted) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		m = sticky(t, e, host.Limits{Sessions: 1})
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Session(t.Context())
		want = `host: module "counter": session: limit exceeded: 1 sessions are open; close one, or raise Limits.Sessions`
		if !errors.Is(err, host.ErrLimit) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if s, err = m.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.Call(t.Context(), "count", nil); !errors.Is(err, host.ErrClosed) {
			t.Errorf("after the module's Close: %v", err)
		}
		if st := m.Stats(); st.Instances != 0 {
			t.Errorf("%+v", st)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestModule_Session_swap keeps a session on its generation while the module
// moves to the next.
func TestModule_Session_swap(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := sticky(t, e, host.Limits{Instances: 1})
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantCount(t, s, "1\x011")
		spec := host.Spec{Wasm: generation(t, '2', '.'), Grants: host.Grants{Sticky: true}}
		if _, err := m.Swap(t.Context(), spec, host.SwapOptions{Watch: host.Watch{Calls: 1, MinCalls: 1}}); err != nil {
			t.Fatal(err)
		}
		call(t, m, "work", "", "2") // settled: the first generation only waits for its session
		wantCount(t, s, "2\x022")
		if s.Generation().Number() != 1 {
			t.Errorf("generation %d", s.Generation().Number())
		}
		fresh, err := m.Session(t.Context())
		if err != nil || fresh.Generation().Number() != 2 {
			t.Fatalf("%v", err)
		}
		wantCount(t, fresh, "1\x011")
		if n := m.Stats().Instances; n != 3 { // both sessions, and the pooled one
			t.Errorf("%d instances", n)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := m.Stats().Instances; n != 2 {
			t.Errorf("%d instances", n)
		}
	})
}

// TestModule_Session_interrupts closes a session whose guest spins.
// isClosed reports whether a call was refused because its session was closed.
func isClosed(err error) bool {
	_, broke := errors.AsType[*host.TrapError](err)
	return errors.Is(err, host.ErrClosed) && !broke
}

// running opens a session and begins a call that would not end, of which ended gets the error.
func running(t *testing.T, m *host.Module) (s *host.Session, ended <-chan error) {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		_, err := s.Call(t.Context(), "run", nil)
		over <- err
	}()
	return s, over
}

// interrupted closes a session under a call that would not end, and returns the call's error.
func interrupted(t *testing.T, m *host.Module) error {
	t.Helper()
	s, ended := running(t, m)
	// The slot is taken when a call with a short patience does not get it, or that one is slow.
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := m.Call(ctx, "ok", nil)
		cancel()
		if err != nil && strings.Contains(err.Error(), "waiting for an instance") {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	return <-ended
}

func TestModule_Session_interrupts(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := sticky(t, e, host.Limits{Instances: 1, Timeout: time.Minute})
		err := interrupted(t, m)
		for isClosed(err) { // the call had not begun: the machine is busy
			err = interrupted(t, m)
		}
		_ = wantTrap(t, err, host.TrapCancelled)
		call(t, m, "ok", "", "")
	})
}

// A session that is closed while a call is about to begin does not wait until that is out of time.
func TestModule_Session_closedAtOnce(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := sticky(t, e, host.Limits{Timeout: 20 * time.Second})
		for range 60 {
			s, ended := running(t, m)
			runtime.Gosched()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
			if err := <-ended; !isClosed(err) {
				_ = wantTrap(t, err, host.TrapCancelled)
			}
		}
	})
}

func TestModule_Session_concurrent(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := sticky(t, e, host.Limits{Instances: 2, Timeout: time.Minute})
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					if _, err := s.Call(t.Context(), "count", nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		out, err := s.Call(t.Context(), "count", nil)
		if err != nil || out[1] != 41 {
			t.Errorf("% x, %v", out, err)
		}
	})
}

// TestModule_idle closes idle instances, and only those.
func TestModule_idle(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := load(t, e, host.Spec{Path: wat("generation"), Limits: host.Limits{Instances: 4, IdleTimeout: time.Minute}})
				if n := m.Stats().Instances; n != 1 {
					t.Fatalf("%d instances after the load", n)
				}
				for range 10 { // each use keeps it
					time.Sleep(50 * time.Second) // fake time
					call(t, m, "work", "", "1")
				}
				if n := m.Stats().Instances; n != 1 {
					t.Errorf("%d instances in use", n)
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if n := m.Stats().Instances; n != 0 {
					t.Errorf("%d instances after the idle time", n)
				}
				call(t, m, "work", "", "1")
				if s := m.Stats(); s.Instances != 1 || s.Replaced != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}
