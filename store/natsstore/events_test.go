package natsstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// TestEvents holds that events cross from one connection to another.
func TestEvents(t *testing.T) {
	t.Parallel()
	mailboxtest.TestEvents(t, func(t *testing.T) (one, other mailbox.Store) {
		t.Helper()
		var name string
		one = open(t, func(c *natsstore.Config) { name = c.Name })
		return one, open(t, func(c *natsstore.Config) { c.Name = name })
	})
}
