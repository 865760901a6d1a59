package outboxstore_test

import (
	"os"
	"testing"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/outbox/outboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
)

func TestMain(m *testing.M) {
	beChild()
	os.Exit(servertest.Main(m))
}

func open(t *testing.T, s *natsstore.Store) *outboxstore.Store {
	t.Helper()
	out, err := outboxstore.New(t.Context(), s, outboxstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStore(t *testing.T) {
	t.Parallel()
	outboxtest.TestStore(t, func(t *testing.T) (outbox.Store, func() outbox.Store) {
		t.Helper()
		s := servertest.Open(t)
		return open(t, s), func() outbox.Store { return open(t, s) }
	})
}
