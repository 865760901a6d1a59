package mailboxtest

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/store"
)

func runCases(t *testing.T, open func(t *testing.T) store.Store, groups ...[]testCase) {
	t.Helper()
	for _, c := range slices.Concat(groups...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newWorld(t, open(t)))
		})
	}
}

// TestMailbox runs the contract of a mailbox on a store. Open opens one store twice, as two processes would.
func TestMailbox(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	runCases(t, func(t *testing.T) store.Store {
		t.Helper()
		one, _ := open(t)
		return one
	}, listCases(), dueCases(), logCases(), sizeCases(), liveCases(), requestCases(), ownCases())
	t.Run("events", func(t *testing.T) {
		t.Parallel()
		testEvents(t, open)
	})
	t.Run("clocks", func(t *testing.T) {
		t.Parallel()
		testClocks(t, open)
	})
	t.Run("caps", func(t *testing.T) {
		t.Parallel()
		testCaps(t, func(t *testing.T, n int) []store.Store {
			t.Helper()
			one, other := open(t)
			return slices.Repeat([]store.Store{one, other}, n)[:n]
		})
	})
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		testLive(t, open)
	})
}

// testCase is one clause of the contract.
type testCase struct {
	name string
	run  func(*world)
}
