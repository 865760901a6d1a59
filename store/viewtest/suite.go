package viewtest

import (
	"testing"

	"github.com/mortise-dev/mortise/inbox/inboxtest"
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
	t.Run("inbox", func(t *testing.T) {
		t.Parallel()
		inboxtest.TestStore(t, open)
	})
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		TestTogether(t, open)
	})
}
