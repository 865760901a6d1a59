package queuetest

import (
	"testing"

	"github.com/mortise-dev/mortise/store"
)

// TestQueue runs the contract of the rules on a store.
func TestQueue(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, group := range [][]testCase{
		queueCases(), leaseCases(), controlCases(), listCases(), dueCases(), logCases(), faultCases(), raceCases(), sizeCases(),
		dropCases(), hostileCases(), lateCases(), liveCases(),
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newWorld(t, open(t)))
			})
		}
	}
}

// testCase is one clause of the contract.
type testCase struct {
	name string
	run  func(*world)
}
