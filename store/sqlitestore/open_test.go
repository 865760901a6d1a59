package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put is a batch that puts a cell.
func put(thread, key, value string) store.Batch {
	return store.Batch{Thread: thread, Base: store.AnyRevision, Put: []store.Cell{{Kind: "k", Key: key, Value: []byte(value)}}}
}

// cells returns the cells of a thread.
func cells(t *testing.T, s store.Store, thread string) []store.Cell {
	t.Helper()
	out, err := s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All("k")}})
	must(t, err)
	return out.Cells
}

// alter runs statements on a file, as another program would, and leaves it private.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	must(t, err)
	db.SetMaxOpenConns(1)
	for _, text := range statements {
		_, err := db.ExecContext(t.Context(), text)
		must(t, err)
	}
	must(t, errors.Join(db.Close(), os.Chmod(path, 0o600)))
}

// refused opens a file that must not be opened, and holds that it stays as it was.
func refused(t *testing.T, cfg sqlitestore.Config, want ...string) {
	t.Helper()
	before, _ := os.ReadFile(cfg.Path)
	s, err := sqlitestore.Open(t.Context(), cfg)
	if err == nil {
		_ = s.Close(t.Context())
		t.Fatalf("%s was opened; want %q", cfg.Path, want)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v; want %s", cfg.Path, err, text)
		}
	}
	if after, _ := os.ReadFile(cfg.Path); !bytes.Equal(after, before) {
		t.Errorf("%s was changed", cfg.Path)
	}
}

// TestOpen_keeps holds that a file is found again under a name that a URL would take apart.
func TestOpen_keeps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c=d&e#f%41.db")
	s := open(t, path)
	_, err := s.Apply(t.Context(), put("t", "1", "value"))
	must(t, err)
	must(t, s.Close(t.Context()))
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if got := cells(t, open(t, path), "t"); len(got) != 1 || string(got[0].Value) != "value" {
		t.Errorf("got %+v", got)
	}
}

// TestOpen_private holds that only the owner can use the files.
func TestOpen_private(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "modes of files mean nothing here")
	}
	dir := t.TempDir()
	_, err := open(t, filepath.Join(dir, "store.db")).Apply(t.Context(), put("t", "1", "value"))
	must(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s, %v", path, info.Mode(), err)
		}
	}
	if len(files) < 2 {
		t.Errorf("there is no log: %q", files)
	}
	shared := fresh(t)
	must(t, os.WriteFile(shared, nil, 0o600))
	must(t, os.Chmod(shared, 0o644)) //nolint:gosec // that is the test
	refused(t, sqlitestore.Config{Path: shared}, shared, "use chmod 600")
}

// TestOpen_link holds that a symbolic link and its target are one file with one log.
func TestOpen_link(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "links need rights here")
	}
	path, link := fresh(t), fresh(t)
	must(t, os.Symlink(path, link))
	refused(t, sqlitestore.Config{Path: link}, "no such file") // SQLite would make it, with another mode
	one := open(t, path)
	other := open(t, link)
	_, err := one.Apply(t.Context(), put("t", "1", "x"))
	must(t, err)
	_, err = other.Apply(t.Context(), put("t", "2", "y"))
	must(t, err)
	if len(cells(t, one, "t")) != 2 || len(cells(t, other, "t")) != 2 {
		t.Error("the link is another file")
	}
	if _, err := os.Stat(link + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log next to the link: %v", err)
	}
}

// TestOpen_refused holds that Open refuses what is not a file of a store, and does not change it.
func TestOpen_refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refused(t, sqlitestore.Config{}, "Path is empty")
	refused(t, sqlitestore.Config{Path: filepath.Join(dir, "x"), Readers: -1}, "Readers is negative")
	refused(t, sqlitestore.Config{Path: filepath.Join(dir, "no", "folder")}, "no such file")
	refused(t, sqlitestore.Config{Path: dir}, "directory")
	text := filepath.Join(dir, "text")
	must(t, os.WriteFile(text, []byte(strings.Repeat("this is not a database. ", 100)), 0o600))
	refused(t, sqlitestore.Config{Path: text}, text, "not a database")
	theirs := filepath.Join(dir, "theirs.db")
	alter(t, theirs, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
	refused(t, sqlitestore.Config{Path: theirs}, theirs, "another program")
	marked := filepath.Join(dir, "marked.db")
	alter(t, marked, "PRAGMA application_id = 7")
	refused(t, sqlitestore.Config{Path: marked, Existing: true}, marked, "another program")
}

// TestOpen_together holds that stores which open one new file at once, and write to it, lose nothing.
func TestOpen_together(t *testing.T) {
	t.Parallel()
	const stores, each = 4, 20
	path := fresh(t)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			for n := range each {
				if _, err := s.Apply(t.Context(), put(fmt.Sprint("t", n%2), fmt.Sprint(i, ".", n), "")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := open(t, path)
	for _, thread := range []string{"t0", "t1"} {
		if n := len(cells(t, s, thread)); n != stores*each/2 {
			t.Errorf("thread %s has %d cells", thread, n)
		}
	}
	must(t, s.Health(t.Context()))
}

// TestMoved holds that nothing is acknowledged that goes to a file which no process finds any more.
func TestMoved(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "an open file cannot be moved here")
	}
	for _, suffix := range []string{"", "-wal"} {
		for _, replaced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q_%t", suffix, replaced), func(t *testing.T) {
				t.Parallel()
				path := fresh(t)
				s := open(t, path)
				_, err := s.Apply(t.Context(), put("t", "1", "before"))
				must(t, err)
				must(t, os.Rename(path+suffix, path+".aside"))
				if replaced {
					must(t, os.WriteFile(path+suffix, nil, 0o600))
				}
				for range 2 {
					if _, err := s.Apply(t.Context(), put("t", "2", "lost")); !errors.Is(err, sqlitestore.ErrMoved) {
						t.Errorf("apply: %v", err)
					}
				}
				if _, err := store.ApplySurely(t.Context(), s, put("t", "2", "lost")); errors.Is(err, store.ErrOutcomeUnknown) {
					t.Errorf("a known outcome is %v", err)
				}
				if err := s.Health(t.Context()); !errors.Is(err, sqlitestore.ErrMoved) {
					t.Errorf("health: %v", err)
				}
				must(t, os.Rename(path+".aside", path+suffix))
				_, err = s.Apply(t.Context(), put("t", "3", "after"))
				must(t, err)
				if got := cells(t, s, "t"); len(got) != 2 {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}
