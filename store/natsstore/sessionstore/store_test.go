package sessionstore_test

import (
	"context"
	"os"
	"testing"

	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/session/sessiontest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/sessionstore"
)

func TestMain(m *testing.M) {
	sessiontest.CrashChild(openName)
	os.Exit(servertest.Main(m))
}

func openName(ctx context.Context, name string) (session.Store, func() error, error) {
	mailbox, err := servertest.Named(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	s, err := sessionstore.New(ctx, mailbox)
	return s, func() error { return mailbox.Close(ctx) }, err
}

func open(t *testing.T, s *natsstore.Store) *sessionstore.Store {
	t.Helper()
	out, err := sessionstore.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func contract(t *testing.T, change ...func(*natsstore.Config)) {
	t.Helper()
	sessiontest.TestStore(t, func(t *testing.T) (session.Store, func() session.Store) {
		t.Helper()
		s := servertest.Open(t, change...)
		return open(t, s), func() session.Store { return open(t, s) }
	})
}

func TestStore(t *testing.T) {
	t.Parallel()
	contract(t)
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	sessiontest.TestCrash(t, openName, servertest.Name(t))
}
