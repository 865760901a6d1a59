package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

// TestExisting holds that a program which only reads makes no file and no tables, and migrates none.
func TestExisting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mailbox.db")
	existing := sqlitestore.Config{Path: path, Existing: true}
	if _, err := sqlitestore.Open(t.Context(), existing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("it was made: %v", err)
	}
	if err := open(t, path).Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	s, err := sqlitestore.Open(t.Context(), existing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sessionstore.New(t.Context(), s); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "it has no tables of session") {
		t.Errorf("tables that are not there: %v", err)
	}
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE schema_version SET version = 1 WHERE name = 'mailbox'`); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(t.Context(), existing); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "have version 1, and this program has version 3; let a program that writes open it first") {
		t.Errorf("tables of an older program: %v", err)
	}
}
