package sqlitestore_test

import (
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
)

func TestStore_modelOfTwo(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mailbox.db")
		return mailboxtest.InTurns(open(t, path), open(t, path))
	}, 300)
}

// TestCaps holds that processes that claim at once count the claims of one another.
func TestCaps(t *testing.T) {
	t.Parallel()
	mailboxtest.TestCaps(t, func(t *testing.T, n int) []mailbox.Store {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mailbox.db")
		var list []mailbox.Store
		for range n {
			list = append(list, open(t, path))
		}
		return list
	})
}
