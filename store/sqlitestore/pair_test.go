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
