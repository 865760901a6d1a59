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

// suite is a suite of a view.
type suite = func(t *testing.T, open OpenFunc)

func runSuites(t *testing.T, open OpenFunc, suites map[string]suite) {
	t.Helper()
	for name, run := range suites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, open)
		})
	}
}

// TestViews runs the contract suites of the views over a store. Handles of a view take turns on both stores.
func TestViews(t *testing.T, open OpenFunc) {
	t.Helper()
	runSuites(t, open, map[string]suite{
		"thread": threadtest.TestThreads, "record": threadtest.TestRecords, "inbox": inboxtest.TestStore, "together": TestTogether,
	})
}
