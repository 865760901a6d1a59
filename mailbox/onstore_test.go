package mailbox_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestRecords(t *testing.T) {
	t.Parallel()
	mailboxtest.TestStore(t, func(*testing.T) mailbox.Store { return mailbox.On(memstore.New()) })
}

// TestRecords_model holds also that what one process remembers does not count when another one has written since.
func TestRecords_model(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(*testing.T) mailbox.Store {
		s := memstore.New()
		return mailboxtest.InTurns(mailbox.On(s), mailbox.On(s))
	}, 2000)
}
