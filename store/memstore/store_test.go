package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	t.Parallel()
	mailboxtest.TestStore(t, func(*testing.T) mailbox.Store { return memstore.New() })
}

func TestStore_model(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(*testing.T) mailbox.Store { return memstore.New() }, 4000)
}
