package mailbox_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestMailbox(t *testing.T) {
	t.Parallel()
	mailboxtest.TestMailbox(t, func(*testing.T) (one, other store.Store) {
		s := memstore.New()
		return s, s
	})
}
