package pgstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// TestUpgrade opens schemas of each earlier version, with rows, as they are in this one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("schema/*.sql")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d versions: %v", len(files), err)
	}
	for version := 1; version < len(files); version++ {
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			t.Parallel()
			now := config(t)
			mailboxtest.TestUpgrade(t, open(t, now), func(t *testing.T) mailbox.Store {
				t.Helper()
				old := config(t)
				earlier(t, old, now.Schema, files[:version])
				return open(t, old)
			})
		})
	}
}

// earlier makes a schema with the tables of an earlier version and the rows of another schema.
func earlier(t *testing.T, c pgstore.Config, rows string, scripts []string) {
	t.Helper()
	conn := connect(t, c)
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), strings.ReplaceAll(text, "@.", c.Schema+"."), append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	exec(`CREATE SCHEMA ` + c.Schema)
	exec(`CREATE TABLE @.migration (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`)
	for i, file := range scripts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		exec(string(text))
		exec(`INSERT INTO @.migration (version) VALUES ($1)`, i+1)
	}
	list, err := conn.Query(t.Context(), `SELECT table_name, string_agg(column_name, ', ') FROM information_schema.columns
		WHERE table_schema = $1 AND table_name NOT IN ('migration', 'listener', 'command') GROUP BY 1`, c.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var table, columns string
	copies := map[string]string{}
	if _, err := pgx.ForEachRow(list, []any{&table, &columns}, func() error { copies[table] = columns; return nil }); err != nil {
		t.Fatal(err)
	}
	for table, columns := range copies {
		exec(`INSERT INTO @.` + table + ` (` + columns + `) SELECT ` + columns + ` FROM ` + rows + `.` + table)
	}
}
