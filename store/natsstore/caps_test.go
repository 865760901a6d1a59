package natsstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// TestCaps holds that processes that claim at once count the claims of one another.
func TestCaps(t *testing.T) {
	t.Parallel()
	mailboxtest.TestCaps(t, func(t *testing.T, n int) []mailbox.Store {
		t.Helper()
		var name string
		list := []mailbox.Store{open(t, func(c *natsstore.Config) { name = c.Name })}
		for len(list) < n {
			list = append(list, open(t, func(c *natsstore.Config) { c.Name = name }))
		}
		return list
	})
}
