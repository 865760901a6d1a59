package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestClose_everythingAtOnce closes sessions, modules and the host while calls run and
// generations change. Each memory must be released once: a second release would take a
// neighbour's memory away, whose guest would then answer with the wrong bytes. The race
// detector sees the two releases, wherever they land.
func TestClose_everythingAtOnce(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		rounds := 12
		if e == hosttest.Extism { // it compiles each module again
			rounds = 3
		}
		for range rounds {
			closeAtOnce(t, e)
		}
	})
}

// closeAtOnce is one round: a module with many sessions, all of which are closed together.
func closeAtOnce(t *testing.T, e string) {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(e), Limits: host.Limits{Instances: 3, Sessions: 32, Timeout: time.Minute}})
	spec := host.Spec{Name: "m", Path: wat("echo"), Grants: host.Grants{Sticky: true}}
	m, err := h.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	neighbour, err := h.Load(t.Context(), host.Spec{Name: "neighbour", Path: wat("echo")})
	if err != nil {
		t.Fatal(err)
	}
	var closed atomic.Bool
	var wg, callers sync.WaitGroup
	for n := range 2 {
		callers.Go(func() {
			for k := 0; !closed.Load(); k++ {
				echoed(t, neighbour.Call, n, k)
			}
		})
		callers.Go(func() {
			for k := 0; !closed.Load(); k++ {
				echoed(t, m.Call, n, k)
			}
		})
	}
	callers.Go(func() {
		for !closed.Load() {
			_, _ = m.Swap(t.Context(), spec, host.SwapOptions{})
		}
	})
	start := make(chan struct{})
	for n := range 24 {
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		echoed(t, s.Call, n, 0)
		wg.Go(func() {
			<-start
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("session: %v", err)
			}
		})
	}
	for _, end := range []func(context.Context) error{m.Close, h.Close} {
		wg.Go(func() {
			<-start
			if err := end(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	closed.Store(true)
	callers.Wait()
	if s := m.Stats(); s.Instances != 0 {
		t.Errorf("%d instances are left", s.Instances)
	}
}

// echoed makes a call of echo, which may be refused because everything is being closed,
// and checks what it answers.
func echoed(t *testing.T, call func(context.Context, string, ...[]byte) ([]byte, error), n, k int) {
	t.Helper()
	in := fmt.Sprintf("%d-%d-%s", n, k, strings.Repeat("x", k%5000))
	out, err := call(t.Context(), "echo", []byte(in))
	if err != nil && !errors.Is(err, host.ErrClosed) {
		t.Error(err)
	}
	if err == nil && string(out) != in {
		t.Errorf("%d bytes came back as %d others", len(in), len(out))
	}
}
