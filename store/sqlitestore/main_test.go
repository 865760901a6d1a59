package sqlitestore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/storetest"
)

// open opens a file and closes it after the test.
func open(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func fresh(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "store.db")
}

// pair opens a new file twice, as two processes do.
func pair(t *testing.T) (one, other store.Store) {
	t.Helper()
	path := fresh(t)
	return open(t, path), open(t, path)
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.TestStore(t, pair)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	storetest.TestEvents(t, pair)
}

func TestModel(t *testing.T) {
	t.Parallel()
	storetest.TestModel(t, pair, testskip.Rounds(100, 20))
}
