package recordstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/filetest"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
)

func keep(t *testing.T, s record.Store, run string, n int) {
	t.Helper()
	err := s.Start(record.Start{Run: abi.RunIdentity{ThreadID: "t", RunID: run}})
	for i := range n {
		err = errors.Join(err, s.Add(run, record.Entry{Step: i}))
	}
	if err := errors.Join(err, s.End(run, record.End{})); err != nil {
		t.Fatal(err)
	}
}

func runs(t *testing.T, s record.Store) (out []string) {
	t.Helper()
	known, err := s.List(100)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known {
		out = append(out, k.ID)
	}
	return out
}

// The newest are those that were written to last, so a run that goes on stays. Looking removes nothing, and
// what is removed is removed with all its lines.
func TestPrune(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	s := open(t, path, record.Config{})
	for i := range 3*20 + 5 { // more than is removed at a time
		keep(t, s, fmt.Sprintf("r%02d", i), 1)
	}
	keep(t, s, "r03", 1)
	looked, err := recordstore.Look(t.Context(), filetest.Open(t, path))
	if err != nil || len(runs(t, looked)) != 65 || runs(t, looked)[0] != "r03" {
		t.Fatalf("before: %q, %v", runs(t, looked), err)
	}
	if got := runs(t, open(t, path, record.Config{Keep: 3})); !slices.Equal(got, []string{"r03", "r64", "r63"}) {
		t.Errorf("kept %q", got)
	}
	db := other(t, path)
	var lines int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM record_line").Scan(&lines); err != nil || lines != 6+3+3 {
		t.Errorf("%d lines, %v", lines, err)
	}
}

// A record that is removed while a run writes to it takes no more.
func TestPrunedMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	s := open(t, path, record.Config{})
	if err := s.Start(record.Start{Run: abi.RunIdentity{RunID: "old"}}); err != nil {
		t.Fatal(err)
	}
	keep(t, s, "new", 1)
	other := open(t, path, record.Config{Keep: 1})
	if err := errors.Join(s.Add("old", record.Entry{}), s.End("old", record.End{})); err != nil {
		t.Error(err)
	}
	if got := runs(t, other); !slices.Equal(got, []string{"new"}) {
		t.Errorf("runs %q", got)
	}
}

// Lines that make no sense are left out and counted; a record of nothing else is none.
func TestBrokenRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	s := open(t, path, record.Config{})
	keep(t, s, "r", 3)
	keep(t, s, "q", 1)
	db := other(t, path)
	exec(t, db, "UPDATE record_line SET data = ? WHERE run = 1 AND n = 3", []byte(`{"entry": {"plu`))
	if r, err := s.Load("r"); err != nil || len(r.Entries) != 2 || r.Unreadable != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	exec(t, db, "UPDATE record_line SET data = ? WHERE run = 1", []byte("{}"))
	if _, err := s.Load("r"); err == nil || !strings.Contains(err.Error(), "not a record of the format") {
		t.Errorf("got %v", err)
	}
	if got := runs(t, s); !slices.Equal(got, []string{"q"}) {
		t.Errorf("runs %q", got)
	}
	if _, err := recordstore.New(t.Context(), filetest.Open(t, path), record.Config{Keep: -1}); err == nil || !strings.Contains(err.Error(), "Config.Keep -1") {
		t.Errorf("a wrong config: %v", err)
	}
	exec(t, db, "UPDATE schema_version SET version = 7 WHERE name = 'record'")
	if _, err := recordstore.Look(t.Context(), filetest.Open(t, path)); err == nil || !strings.Contains(err.Error(), "its tables of record have version 7") {
		t.Errorf("a newer file: %v", err)
	}
}

// An id that names one run of thousands is found by its beginning, and told by eight when it names
// many.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	s := open(t, path, record.Config{})
	keep(t, s, "a-0", 0)
	db := other(t, path)
	exec(t, db, `WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000)
		INSERT INTO record_run (run, written, bytes) SELECT 'b-' || x, x + 1, 0 FROM n`)
	if r, err := s.Load("a"); err != nil || r.ID() != "a-0" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Load("b-"); !errors.Is(err, record.ErrAmbiguous) || !strings.Contains(err.Error(), "b-5000") || len(err.Error()) > 400 {
		t.Errorf("got %v", err)
	}
	if _, err := s.Load("b-1"); err == nil || !strings.Contains(err.Error(), "not a record of the format") {
		t.Errorf("an id that begins others was not found: %v", err)
	}
}

// other opens the file as another program would.
func other(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}
