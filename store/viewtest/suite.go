package viewtest

import (
	"testing"

	"github.com/mortise-dev/mortise/inbox/inboxtest"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/session/sessiontest"
	"github.com/mortise-dev/mortise/store"
)

// OpenFunc opens one empty store twice, as two processes would. Both may be the same Store if the engine knows only one process.
// It closes them with t.Cleanup.
type OpenFunc = func(t *testing.T) (one, other store.Store)

// TestViews runs the contract suites of the views over a store. Handles of a view take turns on both stores.
func TestViews(t *testing.T, open OpenFunc) {
	t.Helper()
	t.Run("session", func(t *testing.T) {
		t.Parallel()
		sessiontest.TestStore(t, func(t *testing.T) (session.Store, func() session.Store) {
			one, other := open(t)
			stores := turns(one, other)
			return session.On(stores()), func() session.Store { return session.On(stores()) }
		})
	})
	t.Run("record", func(t *testing.T) {
		t.Parallel()
		recordtest.TestStore(t, func(t *testing.T) func(record.Config) record.Store {
			one, other := open(t)
			stores := turns(one, other)
			return func(cfg record.Config) record.Store {
				r, err := record.On(t.Context(), stores(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
		})
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

// turns returns a function that returns one, then other, then one again.
func turns(one, other store.Store) func() store.Store {
	return func() (s store.Store) {
		s, one, other = one, other, one
		return s
	}
}
