package recordstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/filetest"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
)

func TestMain(m *testing.M) {
	recordtest.CrashChild(openName)
	goleak.VerifyTestMain(m)
}

func openName(ctx context.Context, name string) (record.Store, func() error, error) {
	file, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: name})
	if err != nil {
		return nil, nil, err
	}
	s, err := recordstore.New(ctx, file, record.Config{})
	return s, func() error { return file.Close(ctx) }, err
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	recordtest.TestCrash(t, openName, path)
	filetest.Intact(t, path)
}

func open(t *testing.T, path string, cfg record.Config) *recordstore.Store {
	t.Helper()
	s, err := recordstore.New(t.Context(), filetest.Open(t, path), cfg)
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
