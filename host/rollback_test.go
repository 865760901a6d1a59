package host_test

import (
	"errors"
	"testing"

	"github.com/mortise-dev/mortise/host"
)

// TestGeneration_Fault: answers that the caller cannot use roll a generation back as failed calls do.
func TestGeneration_Fault(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{})
		first := m.Current()
		g, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, '2', '.')}, host.SwapOptions{Watch: host.Watch{MinCalls: 3}})
		if err != nil {
			t.Fatal(err)
		}
		first.Fault(t.Context(), errors.New("of one that is not watched"))
		for n := 1; m.Current() == g; n++ {
			if _, err := g.Call(t.Context(), "work", nil); err != nil {
				t.Fatal(err)
			}
			g.Fault(t.Context(), nil) // no failure
			g.Fault(t.Context(), errors.New("it answered nothing"))
			if n > 3 {
				t.Fatal("not rolled back after 4 answers that cannot be used")
			}
		}
		last := m.events[len(m.events)-1]
		if last.Kind != host.SwapRolledBack || last.Calls != 3 || last.Failures != 2 || last.Reason != "it answered nothing" {
			t.Errorf("%+v", last)
		}
		if last.SHA256 != g.Info().SHA256 || last.CurrentSHA256 != first.Info().SHA256 {
			t.Errorf("from %s to %s", last.SHA256, last.CurrentSHA256)
		}
		g.Fault(t.Context(), errors.New("too late")) // and does nothing
	})
}

// TestGeneration_RollBack: a caller that knows better ends the watch at once, once.
func TestGeneration_RollBack(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := startSwapping(t, e, host.Limits{})
		first := m.Current()
		if first.RollBack(t.Context(), "there is none before it") {
			t.Error("the first generation was rolled back")
		}
		g, err := m.Swap(t.Context(), host.Spec{Wasm: generation(t, '2', '.')}, host.SwapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if first.RollBack(t.Context(), "it is not in use") || !g.RollBack(t.Context(), "no good") || g.RollBack(t.Context(), "no good") {
			t.Error("rolled back at the wrong time")
		}
		if last := m.events[len(m.events)-1]; m.Current() != first || last.Kind != host.SwapRolledBack || last.Reason != "no good" || m.Stats().Rollbacks != 1 {
			t.Errorf("%+v", last)
		}
		call(t, m.Module, "work", "", "1")
		// A generation that has proved itself stays.
		g, err = m.Swap(t.Context(), host.Spec{Wasm: generation(t, '2', '.')}, host.SwapOptions{Watch: host.Watch{Calls: 1}})
		if err != nil {
			t.Fatal(err)
		}
		call(t, m.Module, "work", "", "2")
		if g.RollBack(t.Context(), "too late") || m.Current() != g {
			t.Error("a generation that has proved itself was rolled back")
		}
	})
}
