package sqlitestore_test

import (
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
)

func TestRun_killed(t *testing.T) {
	t.Parallel()
	agentruntest.TestKilled(t, openName, func(t *testing.T) string {
		t.Helper()
		return filepath.Join(t.TempDir(), "mailbox.db")
	})
}
