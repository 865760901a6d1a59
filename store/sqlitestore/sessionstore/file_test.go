package sessionstore_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/filetest"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

// other opens the file as another program would.
func other(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
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

func message(id string) abi.Message { return abi.Message{ID: id, Role: abi.RoleUser} }

// What is in the file and makes no sense is told by thread and line, and never guessed at.
func TestBrokenRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	s := open(t, path)
	_, err := s.Swap("t", 0, compaction.State{Total: 1})
	if err := errors.Join(err, s.Append("t", message("a"), message("b")), s.Record(compaction.Event{Thread: "t"})); err != nil {
		t.Fatal(err)
	}
	db := other(t, path)
	for want, data := range map[string]string{
		"line 2: holds no message":                            "{}",
		"line 2: invalid character":                           "what",
		`line 2: replaces "z", which does not come before`:    `{"replace":{"id":"z"}}`,
		"line 2: json: cannot unmarshal array into Go value":  "[]",
		"line 2: json: cannot unmarshal number into Go value": "7",
	} {
		exec(t, db, "UPDATE session_line SET data = ? WHERE n = 2", []byte(data))
		if log, err := s.Log("t"); err == nil || log != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `thread "t"`) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	exec(t, db, "UPDATE session_state SET data = ?", []byte("{"))
	if _, rev, err := s.Load("t"); err == nil || rev != 0 || !strings.Contains(err.Error(), "state 1: unexpected end") {
		t.Errorf("got %v", err)
	}
	exec(t, db, "UPDATE session_event SET data = ?", []byte("[]"))
	if all, err := s.Events("t"); err == nil || all != nil || !strings.Contains(err.Error(), "event 1: ") {
		t.Errorf("got %v", err)
	}
	exec(t, db, "UPDATE schema_version SET version = 7 WHERE name = 'session'")
	if _, err := sessionstore.New(t.Context(), filetest.Open(t, path)); err == nil || !strings.Contains(err.Error(), "its tables of session have version 7, and this program knows 1") {
		t.Errorf("a newer file: %v", err)
	}
}

// A call does not wait for ever for another process, and is not made later.
func TestHeld(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	s := open(t, path)
	if err := s.Append("t", message("a")); err != nil {
		t.Fatal(err)
	}
	tx, err := other(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if log, err := s.Log("t"); err != nil || len(log) != 1 {
		t.Errorf("a reader waits for a writer: %d messages, %v", len(log), err)
	}
	if err := s.Append("t", message("b")); err == nil || !strings.Contains(err.Error(), "another process holds the file for more than 5s") {
		t.Errorf("append: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Append("t", message("c")); err != nil {
		t.Fatal(err)
	}
	if log, err := s.Log("t"); err != nil || len(log) != 2 || log[1].ID != "c" {
		t.Errorf("the log is %+v, %v", log, err)
	}
}

// Nothing is removed from a log: what was replaced is still in the file.
func TestLogGrows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mortise.db")
	s := open(t, path)
	if err := errors.Join(s.Append("t", message("a")), s.Replace("t", message("a")), s.Replace("t", message("a"))); err != nil {
		t.Fatal(err)
	}
	var lines int
	if err := other(t, path).QueryRowContext(t.Context(), "SELECT count(*) FROM session_line").Scan(&lines); err != nil || lines != 3 {
		t.Errorf("%d lines, %v", lines, err)
	}
	if _, err := s.Log("u"); !errors.Is(err, session.ErrUnknown) {
		t.Error(err)
	}
}
