package viewtest

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
)

// TestMailbox runs the suites of the mailbox on a store: its contract, that many schedules of its model by two processes that take turns, and
// what crosses from one process to another.
func TestMailbox(t *testing.T, open OpenFunc, schedules int) {
	t.Helper()
	runSuites(t, open, map[string]suite{
		"model": func(t *testing.T, open OpenFunc) {
			t.Helper()
			mailboxtest.TestModel(t, open, schedules)
		},
		"mailbox": mailboxtest.TestMailbox, "agent": agentruntest.TestCommits, "retention": agentruntest.TestRetention,
	})
}

// NameFunc opens the store of a name, which is the same in all processes that share it.
type NameFunc = func(ctx context.Context, name string) (s store.Store, closeStore func(context.Context) error, err error)

// Child makes this process a child of [TestKilled], if it was started as one, and does not return then. TestMain calls it first.
func Child(open NameFunc) {
	mailboxtest.CrashChild(open)
	agentruntest.Child(open)
}

// TestKilled kills processes that submit, claim and run on one store, 200 times or until patience is over, and agents at each step of
// their runs. Name makes the name of an empty store.
func TestKilled(t *testing.T, open NameFunc, name func(t *testing.T) string, patience time.Duration) {
	t.Helper()
	t.Run("mailbox", func(t *testing.T) {
		t.Parallel()
		mailboxtest.TestCrashFor(t, open, name(t), patience)
	})
	t.Run("agent", func(t *testing.T) {
		t.Parallel()
		agentruntest.TestKilled(t, open, name)
	})
}
