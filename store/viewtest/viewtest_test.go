package viewtest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestViews(t *testing.T) {
	t.Parallel()
	viewtest.TestViews(t, func(*testing.T) (one, other store.Store) {
		s := memstore.New()
		return s, s
	})
}
