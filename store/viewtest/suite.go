package viewtest

import (
	"testing"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/outbox/outboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread/threadtest"
)

// OpenFunc opens one empty store twice, as two processes would. Both may be the same Store if the engine knows only one process.
// It closes them with t.Cleanup.
type OpenFunc = func(t *testing.T) (one, other store.Store)

// TestViews runs the contract suites of the views over a store. Handles of a view take turns on both stores.
func TestViews(t *testing.T, open OpenFunc) {
	t.Helper()
	t.Run("thread", func(t *testing.T) {
		t.Parallel()
		threadtest.TestThreads(t, open)
	})
	t.Run("record", func(t *testing.T) {
		t.Parallel()
		threadtest.TestRecords(t, open)
	})
	t.Run("outbox", func(t *testing.T) {
		t.Parallel()
		outboxtest.TestStore(t, func(t *testing.T) (outbox.Store, func() outbox.Store) {
			one, other := open(t)
			return outbox.On(one), func() outbox.Store { return outbox.On(other) }
		})
	})
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		TestTogether(t, open)
	})
}
