package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
)

// TestUpgrade opens files of each earlier version, with rows, as they are in this one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("schema/*.sql")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d versions: %v", len(files), err)
	}
	for version := 1; version < len(files); version++ {
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "now.db")
			mailboxtest.TestUpgrade(t, open(t, path), func(t *testing.T) mailbox.Store {
				t.Helper()
				old := filepath.Join(dir, "old.db")
				earlier(t, old, path, files[:version])
				return open(t, old)
			})
		})
	}
}

// earlier makes a file with the tables of an earlier version and the rows of another file.
func earlier(t *testing.T, path, rows string, scripts []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	exec(`CREATE TABLE schema_version (name TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL); PRAGMA application_id = 0x6d6f7274`)
	exec(`INSERT INTO schema_version VALUES ('mailbox', ?)`, len(scripts))
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		exec(string(text))
	}
	exec(`ATTACH ? AS now`, "file:"+rows)
	for _, table := range texts(t, db, `SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_version'`) {
		columns := strings.Join(texts(t, db, `SELECT name FROM pragma_table_info(?, 'main')`, table), ", ")
		exec(`DELETE FROM main.` + table)
		exec(`INSERT INTO main.` + table + ` (` + columns + `) SELECT ` + columns + ` FROM now.` + table)
	}
	exec(`DETACH now`)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// texts lists what a query gives.
func texts(t *testing.T, db *sql.DB, query string, args ...any) (out []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
