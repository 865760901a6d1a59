package natsstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	mailboxtest.TestStore(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t)
	})
}

// There are more where a store is quicker. A long run has a server of its own, so that the race detector does not slow it down.
func TestModel(t *testing.T) {
	t.Parallel()
	const schedules = 120
	var change []func(*natsstore.Config)
	if mailboxtest.LongModel() {
		url := servertest.Apart(t)
		change = append(change, func(c *natsstore.Config) { c.URL = url })
	}
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, change...)
	}, schedules)
}
