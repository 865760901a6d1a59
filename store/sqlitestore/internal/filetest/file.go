package filetest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// Open opens a file and closes it with the test.
func Open(t *testing.T, path string) *sqlitestore.Store {
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

// Intact checks the pages of a file.
func Intact(t *testing.T, path string) {
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
