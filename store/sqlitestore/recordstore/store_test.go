package recordstore_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
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
	intact(t, path)
}

// intact checks the file itself.
func intact(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var integrity string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
		t.Errorf("integrity: %q, %v", integrity, err)
	}
}

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
