package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/mailbox"
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

func TestStore_model(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, config(t))
	}, 250)
}
