package host_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// onMemories runs a suite on each way in which a guest's memory is reset.
func onMemories(t *testing.T, suite func(t *testing.T, open func(guest string, limits host.Limits) *host.Module)) {
	t.Helper()
	for _, mode := range []string{"mapped", "portable"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)})
			if mode == "portable" && !host.UsePortableMemory(h) {
				t.Fatal("the engine has no portable memory")
			}
			suite(t, func(guest string, limits host.Limits) *host.Module {
				t.Helper()
				limits.Instances = 1
				m, err := h.Load(t.Context(), host.Spec{Path: wat(guest), Limits: limits})
				if err != nil {
					t.Fatal(err)
				}
				return m
			})
		})
	}
}

// found words what a look answers: its output, or how it failed.
func found(t *testing.T, m *host.Module, look string) string {
	t.Helper()
	out, err := m.Call(t.Context(), look, []byte("input"))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("% x", out)
}

func exportsWith(m *host.Module, prefix string) []string {
	var out []string
	for _, name := range m.Info().Exports {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}

// replaces describes which writes cost the instance: what they change cannot be reset.
func replaces(write string) bool {
	return write == "write_close"
}

// TestNative_fresh writes in one call and looks in the next.
func TestNative_fresh(t *testing.T) {
	t.Parallel()
	onMemories(t, func(t *testing.T, open func(string, host.Limits) *host.Module) {
		t.Helper()
		m := open("secrets", host.Limits{})
		looks, writes := exportsWith(m, "look_"), exportsWith(m, "write_")
		if len(looks) < 10 || len(writes) < 10 {
			t.Fatalf("looks %v, writes %v", looks, writes)
		}
		fresh := make(map[string]string)
		for _, look := range looks {
			never := open("secrets", host.Limits{})
			fresh[look] = found(t, never, look)
		}
		for _, write := range writes {
			for _, look := range looks {
				before := m.Stats()
				_, err := m.Call(t.Context(), write, []byte("another secret input"))
				var refused *host.GuestError
				if err != nil && !errors.As(err, &refused) {
					t.Fatalf("%s: %v", write, err)
				}
				if got := m.Stats().Replaced - before.Replaced; (got == 1) != replaces(write) {
					t.Errorf("%s replaced %d instances", write, got)
				}
				if got := found(t, m, look); got != fresh[look] {
					t.Errorf("%s, then %s: %s\nin a fresh instance: %s", write, look, got, fresh[look])
				}
			}
		}
	})
}

// TestNative_kernelHeader writes where only the kernel may, and makes a free list
// point there. Each traps, and the next instance knows nothing of it.
func TestNative_kernelHeader(t *testing.T) {
	t.Parallel()
	onMemories(t, func(t *testing.T, open func(string, host.Limits) *host.Module) {
		t.Helper()
		m := open("secrets", host.Limits{})
		fresh := found(t, m, "look_blocks")
		attacks := append(exportsWith(m, "header_"), "beyond_top", "across_top", "list_outside")
		if len(attacks) != 7 {
			t.Fatalf("attacks: %v", attacks)
		}
		for _, export := range attacks {
			_, err := m.Call(t.Context(), export, nil)
			if trap := wantTrap(t, err, host.TrapFault); !strings.HasPrefix(trap.Detail, "unreachable at ") {
				t.Errorf("%s: %v", export, err)
			}
			if got := found(t, m, "look_blocks"); got != fresh {
				t.Errorf("after %s: %s, want %s", export, got, fresh)
			}
		}
	})
}

// TestNative_stateful changes what cannot be reset: each call gets an instance of
// its own, initialised as the first one was.
func TestNative_stateful(t *testing.T) {
	t.Parallel()
	onMemories(t, func(t *testing.T, open func(string, host.Limits) *host.Module) {
		t.Helper()
		m := open("stateful", host.Limits{})
		calls := int64(0)
		for _, export := range m.Info().Exports {
			if export == "_initialize" {
				continue
			}
			for range 3 {
				_, err := m.Call(t.Context(), export, nil)
				calls++
				var refused *host.GuestError
				if !errors.As(err, &refused) || refused.Code != 1 {
					t.Errorf("%s is not as in a first call: %v", export, err)
				}
			}
		}
		if s := m.Stats(); calls != 18 || s.Replaced != calls || s.Traps != 0 {
			t.Errorf("%d calls: %+v", calls, s)
		}
	})
}
