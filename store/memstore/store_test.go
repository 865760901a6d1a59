package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(*testing.T) (one, other store.Store) {
	s := memstore.New()
	return s, s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.TestStore(t, open)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	storetest.TestEvents(t, open)
}

func TestModel(t *testing.T) {
	t.Parallel()
	storetest.TestModel(t, open, 300)
}
