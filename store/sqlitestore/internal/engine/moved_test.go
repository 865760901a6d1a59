package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// TestFile_moved holds that nothing is acknowledged that goes to a file which nobody finds any more, and that nothing is
// made in the place of one that is gone.
func TestFile_moved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ suffix string }{"file": {""}, "log": {"-wal"}} {
		for _, replaced := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "_removed", true: "_replaced"}[replaced], func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "a ?#%41 name.db")
				f := open(t, path, table)
				must(t, f.Write(t.Context(), insert("before")))
				must(t, os.Rename(path+c.suffix, path+".aside"))
				if replaced {
					must(t, os.WriteFile(path+c.suffix, nil, 0o600))
				}
				for range 2 {
					if err := f.Write(t.Context(), insert("lost")); !errors.Is(err, engine.ErrMoved) {
						t.Errorf("write gave %v", err)
					}
				}
				if err := f.Read(t.Context(), func(*engine.Conn) error { return nil }); !errors.Is(err, engine.ErrMoved) {
					t.Errorf("read gave %v", err)
				}
				if _, err := os.Stat(path + c.suffix); err == nil != replaced {
					t.Errorf("in its place: %v", err)
				}
				must(t, os.Rename(path+".aside", path+c.suffix))
				must(t, f.Write(t.Context(), insert("after")))
				if n := count(t, f, "t"); n != 2 {
					t.Errorf("%d rows", n)
				}
			})
		}
	}
}

// TestOpen_moved holds that a reader makes no file.
func TestOpen_moved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file.db")
	f, err := engine.Open(t.Context(), engine.Config{Path: path})
	must(t, err)
	must(t, os.Rename(path, path+".aside"))
	if err := f.Read(t.Context(), func(*engine.Conn) error { return nil }); err == nil {
		t.Error("read a file that is gone")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	must(t, os.Rename(path+".aside", path))
	must(t, f.Close(context.Background()))
}
