package sessionstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/session/sessiontest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/filetest"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

func TestMain(m *testing.M) {
	sessiontest.CrashChild(openName)
	goleak.VerifyTestMain(m)
}

func openName(ctx context.Context, name string) (session.Store, func() error, error) {
	file, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: name})
	if err != nil {
		return nil, nil, err
	}
	s, err := sessionstore.New(ctx, file)
	return s, func() error { return file.Close(ctx) }, err
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	sessiontest.TestCrash(t, openName, path)
	filetest.Intact(t, path)
}

func open(t *testing.T, path string) *sessionstore.Store {
	t.Helper()
	s, err := sessionstore.New(t.Context(), filetest.Open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	sessiontest.TestStore(t, func(t *testing.T) (session.Store, func() session.Store) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mortise.db")
		return open(t, path), func() session.Store { return open(t, path) }
	})
}
