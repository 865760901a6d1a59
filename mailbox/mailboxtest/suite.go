package mailboxtest

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
)

// TestStore runs the contract suite.
func TestStore(t *testing.T, open func(t *testing.T) mailbox.Store) {
	t.Helper()
	for _, group := range [][]testCase{queueCases(), leaseCases(), controlCases(), listCases(), dueCases(), logCases(), storeCases(), faultCases(), raceCases(), holdingCases(), damageCases(), deafCases(), sizeCases(), slowCases(), decideCases(), lateCases(), dropCases(), hostileCases(), requestCases()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newWorld(t, open(t)))
			})
		}
	}
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		testLive(t, open)
	})
	t.Run("live_strange", func(t *testing.T) {
		t.Parallel()
		testLiveStrange(t, open)
	})
	t.Run("live_panic", func(t *testing.T) {
		t.Parallel()
		testLivePanic(newWorld(t, open(t)))
	})
	t.Run("events", func(t *testing.T) {
		t.Parallel()
		TestEvents(t, func(t *testing.T) (one, other mailbox.Store) {
			t.Helper()
			one = open(t)
			return one, one
		})
	})
	t.Run("clocks", func(t *testing.T) {
		t.Parallel()
		TestClocks(t, func(t *testing.T) (one, other mailbox.Store) {
			t.Helper()
			one = open(t)
			return one, one
		})
	})
	t.Run("caps", func(t *testing.T) {
		t.Parallel()
		TestCaps(t, func(t *testing.T, n int) []mailbox.Store {
			t.Helper()
			return slices.Repeat([]mailbox.Store{open(t)}, n)
		})
	})
	t.Run("signals", func(t *testing.T) {
		t.Parallel()
		testSignals(newWorld(t, open(t)))
	})
}

// testCase is one clause of the contract.
type testCase struct {
	name string
	run  func(*world)
}
