package recordstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
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

func open(t *testing.T, path string, cfg record.Config) *recordstore.Store {
	t.Helper()
	s, err := recordstore.New(t.Context(), openFile(t, path), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	recordtest.TestStore(t, func(t *testing.T) func(record.Config) record.Store {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mortise.db")
		return func(cfg record.Config) record.Store { return open(t, path, cfg) }
	})
}
