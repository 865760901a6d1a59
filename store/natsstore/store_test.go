package natsstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	mailboxtest.TestStore(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t)
	})
}

// There are more where a store is quicker, and with MORTISE_TEST_MAILBOX_SCHEDULES.
func TestModel(t *testing.T) {
	t.Parallel()
	const schedules = 40
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t)
	}, schedules)
}
