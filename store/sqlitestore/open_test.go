package sqlitestore_test

import (
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
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func entry(thread, id string) mailbox.Entry {
	return mailbox.Entry{ID: id, Thread: thread, NewRun: "run-" + id, Priority: mailbox.PriorityDefault, MaxAttempts: 5, Request: []byte(id)}
}

func TestStore_model(t *testing.T) {
	t.Parallel()
	schedules := 400
	if testing.Short() {
		schedules = 50
	}
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		return open(t, filepath.Join(t.TempDir(), "mailbox.db"))
	}, schedules)
}

// TestStore_keeps holds that a file is found again under a name that a URL would take apart, and
// that a closed store says so.
func TestStore_keeps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c=d&e#f%41.db")
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	must(t, err)
	_, err = benchQueue(t, s).Enqueue(t.Context(), entry("t", "d1"))
	must(t, err)
	must(t, errors.Join(s.Close(t.Context()), s.Close(t.Context())))
	if _, err := s.Load(t.Context(), "t", mailbox.Need{}); err == nil {
		t.Error("a closed store answered")
	}
	if _, err := benchQueue(t, s).Enqueue(t.Context(), entry("t", "d2")); err == nil {
		t.Error("a closed store wrote")
	}
	d, found, err := benchQueue(t, open(t, path)).Dispatch(t.Context(), "d1")
	if err != nil || !found || d.Thread != "t" {
		t.Errorf("%+v, %t, %v", d, found, err)
	}
}

func TestOpen_private(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "modes of files mean nothing here")
	}
	dir := t.TempDir()
	_, err := benchQueue(t, open(t, filepath.Join(dir, "mailbox.db"))).Enqueue(t.Context(), entry("t", "d1"))
	must(t, err)
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		info, err := d.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("%d files, %v", files, err)
	}
	shared := filepath.Join(t.TempDir(), "shared.db")
	must(t, os.WriteFile(shared, nil, 0o600))
	must(t, os.Chmod(shared, 0o644))
	refused(t, shared, "use chmod 600")
}

func refused(t *testing.T, path, want string) {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err == nil {
		_ = s.Close(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v; want %s", path, err, want)
	}
}

// alter runs statements on a file, which has to be a private one.
func alter(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	must(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	must(t, errors.Join(err, db.Close(), os.Chmod(path, 0o600)))
}

func TestOpen_refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refused(t, "", "Path is empty")
	refused(t, filepath.Join(dir, "no", "folder"), "no such file")
	refused(t, dir, "directory")
	text := filepath.Join(dir, "text")
	must(t, os.WriteFile(text, []byte(strings.Repeat("this is not a database. ", 100)), 0o600))
	refused(t, text, "not a database")
	theirs := filepath.Join(dir, "theirs.db")
	alter(t, theirs, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
	refused(t, theirs, "another program")
	newer := filepath.Join(dir, "newer.db")
	must(t, open(t, newer).Close(t.Context()))
	alter(t, newer, "UPDATE schema_version SET version = 99 WHERE name = 'mailbox'")
	refused(t, newer, "its tables of mailbox have version 99, and this program knows 3; use a newer program")
}

// TestStore_two holds that stores on one file, opened at the same moment as a new one and used at
// once, behave like one.
func TestStore_two(t *testing.T) {
	t.Parallel()
	const stores, each = 3, 20
	path := filepath.Join(t.TempDir(), "mailbox.db")
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
			q := benchQueue(t, s)
			for n := range each {
				if _, err := q.Enqueue(t.Context(), entry(fmt.Sprint("t", n%2), fmt.Sprintf("d%d-%d", i, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := open(t, path)
	q := benchQueue(t, s)
	for _, thread := range []string{"t0", "t1"} {
		h, err := q.Head(t.Context(), thread)
		must(t, err)
		if h.Queued != stores*each/2 || h.Seq != stores*each/2 {
			t.Errorf("thread %s: %d queued, seq %d", thread, h.Queued, h.Seq)
		}
	}
}

// TestStore_waits holds that a writer waits for another process, until its context or the store
// ends, and that reading does not.
func TestStore_waits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mailbox.db")
	s := open(t, path)
	q := benchQueue(t, s)
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
	must(t, err)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := q.Enqueue(ctx, entry("t", "d1")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another process holds the file: %v", err)
	}
	if h, err := q.Head(t.Context(), "t"); err != nil || h.Seq != 0 {
		t.Errorf("reading waits for a writer: %+v, %v", h, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := q.Enqueue(t.Context(), entry("t", "d2"))
		done <- err
	}()
	must(t, tx.Rollback())
	must(t, <-done)
	tx, err = db.BeginTx(t.Context(), nil)
	must(t, err)
	go func() {
		_, err := q.Enqueue(t.Context(), entry("t", "d3"))
		done <- err
	}()
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	must(t, s.Close(short))
	if err := <-done; err == nil {
		t.Error("written although another process held the file")
	}
	must(t, tx.Rollback())
}
