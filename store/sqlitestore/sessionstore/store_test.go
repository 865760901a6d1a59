package sessionstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/session/sessiontest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openFile(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return file
}

func open(t *testing.T, path string) *sessionstore.Store {
	t.Helper()
	s, err := sessionstore.New(t.Context(), openFile(t, path))
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
