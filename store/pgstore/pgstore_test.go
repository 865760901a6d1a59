package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

var (
	shared  pgtest.Shared
	schemas atomic.Int64
)

// suite stops the server before goroutines are counted.
type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	if err := shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	mailboxtest.CrashChild(openName)
	agentruntest.Child(openSchema)
	goleak.VerifyTestMain(suite{m})
}

// config is that of a new schema, which goes when the test ends.
func config(tb testing.TB) pgstore.Config {
	tb.Helper()
	c := pgstore.Config{URL: shared.URL(tb), Schema: fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1)), Conns: 4}
	tb.Cleanup(func() { exec(tb, c, `DROP SCHEMA IF EXISTS `+c.Schema+` CASCADE`) })
	return c
}

func open(tb testing.TB, c pgstore.Config) *pgstore.Store {
	tb.Helper()
	s, err := pgstore.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	mailboxtest.TestStore(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, config(t))
	})
}

// TestStore_events holds that events cross from one pool to another.
func TestStore_events(t *testing.T) {
	t.Parallel()
	mailboxtest.TestEvents(t, func(t *testing.T) (one, other mailbox.Store) {
		t.Helper()
		c := config(t)
		return open(t, c), open(t, c)
	})
}

// TestStore_clocks holds that leases go by the server's clock.
func TestStore_clocks(t *testing.T) {
	t.Parallel()
	mailboxtest.TestClocks(t, func(t *testing.T) (one, other mailbox.Store) {
		t.Helper()
		c := config(t)
		return open(t, c), open(t, c)
	})
}

// TestStore_caps holds that processes that claim at once count the claims of one another.
func TestStore_caps(t *testing.T) {
	t.Parallel()
	mailboxtest.TestCaps(t, func(t *testing.T, n int) []mailbox.Store {
		t.Helper()
		c := config(t)
		c.Conns = 2
		var list []mailbox.Store
		for range n {
			list = append(list, open(t, c))
		}
		return list
	})
}

// TestStore_purgeEvents holds that old events are dropped, and young ones are not.
func TestStore_purgeEvents(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
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

func TestStore_model(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, config(t))
	}, 400)
}
