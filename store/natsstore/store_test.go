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

// The rest of the schedules run on stores that are quicker.
func TestModel(t *testing.T) {
	t.Parallel()
	const schedules = 40
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t)
	}, schedules)
}
