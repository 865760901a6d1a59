package sqlitestore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func TestMain(m *testing.M) {
	mailboxtest.CrashChild(openName)
	agentruntest.Child(openName)
	goleak.VerifyTestMain(m)
}

func open(tb testing.TB, path string) *sqlitestore.Store {
	tb.Helper()
	s, err := sqlitestore.Open(tb.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// TestEvents holds that events cross from one process to another by the file.
func TestEvents(t *testing.T) {
	t.Parallel()
	mailboxtest.TestEvents(t, func(t *testing.T) (one, other mailbox.Store) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mailbox.db")
		return open(t, path), open(t, path)
	})
}

// TestClocks holds that leases go by the clock of the machine.
func TestClocks(t *testing.T) {
	t.Parallel()
	mailboxtest.TestClocks(t, func(t *testing.T) (one, other mailbox.Store) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mailbox.db")
		return open(t, path), open(t, path)
	})
}

// TestPurgeEvents holds that old events are dropped, and young ones are not.
func TestPurgeEvents(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "mailbox.db"))
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range uint64(3) {
		b := mailbox.EventBatch{Stream: "d", Fence: 1, First: i + 1, Last: i + 1, At: at.Add(time.Duration(i) * time.Hour), Data: []byte("x")} //nolint:gosec // few
		if _, err := s.AppendEvents(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PurgeEvents(t.Context(), at.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	list, err := s.ReadEvents(t.Context(), "d", 0, 10, 0)
	if err != nil || len(list) != 2 || list[0].First != 2 || !list[1].At.Equal(at.Add(2*time.Hour)) {
		t.Errorf("left are %+v, %v", list, err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	mailboxtest.TestStore(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, filepath.Join(t.TempDir(), "mailbox.db"))
	})
}
