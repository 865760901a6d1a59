package sqlitestore_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// TestExisting holds that a program which only reads makes no file and no tables, and migrates none.
func TestExisting(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	existing := sqlitestore.Config{Path: path, Existing: true}
	absent := func() {
		t.Helper()
		refused(t, existing, path)
		if _, err := sqlitestore.Open(t.Context(), existing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
	absent()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("it was made: %v", err)
	}
	must(t, os.WriteFile(path, nil, 0o600))
	absent()
	s := open(t, path)
	_, err := s.Apply(t.Context(), put("t", "1", "value"))
	must(t, err)
	for range 2 { // while it is open, and when it was closed
		reader, err := sqlitestore.Open(t.Context(), existing)
		must(t, err)
		if got := cells(t, reader, "t"); len(got) != 1 {
			t.Errorf("got %+v", got)
		}
		must(t, reader.Close(t.Context()))
		must(t, s.Close(t.Context()))
	}
	alter(t, path, "PRAGMA user_version = 0")
	absent()
}
