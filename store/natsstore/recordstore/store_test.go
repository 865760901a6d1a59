package recordstore_test

import (
	"context"
	"os"
	"testing"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/recordstore"
)

func TestMain(m *testing.M) {
	recordtest.CrashChild(openName)
	os.Exit(servertest.Main(m))
}

func openName(ctx context.Context, name string) (record.Store, func() error, error) {
	mailbox, err := servertest.Named(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	s, err := recordstore.New(ctx, mailbox, record.Config{})
	return s, func() error { return mailbox.Close(ctx) }, err
}

func open(t *testing.T, s *natsstore.Store, cfg record.Config) *recordstore.Store {
	t.Helper()
	out, err := recordstore.New(t.Context(), s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func contract(t *testing.T, change ...func(*natsstore.Config)) {
	t.Helper()
	recordtest.TestStore(t, func(t *testing.T) func(record.Config) record.Store {
		t.Helper()
		s := servertest.Open(t, change...)
		return func(cfg record.Config) record.Store { return open(t, s, cfg) }
	})
}

func TestStore(t *testing.T) {
	t.Parallel()
	contract(t)
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	recordtest.TestCrash(t, openName, servertest.Name(t))
}

// The contract holds on three servers.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := servertest.NewCluster(t)
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		contract(t, c.Config)
	})
}
