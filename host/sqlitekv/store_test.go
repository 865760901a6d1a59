package sqlitekv_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/host/sqlitekv"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// writerPath makes this test binary a process that writes to a store until it is
// killed.
const writerPath = "MORTISE_TEST_SQLITEKV_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerPath); path != "" {
		writeForEver(path)
	}
	goleak.VerifyTestMain(m)
}

// writeForEver prints each key once it was set.
func writeForEver(path string) {
	ctx := context.Background()
	s, err := sqlitekv.Open(ctx, sqlitekv.Config{Path: path})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		key := fmt.Sprintf("%s-%08d", os.Getenv(writerPath+"_NAME"), i)
		if err := s.Set(ctx, "n", key, []byte(strings.Repeat(key, 50)), roomy()); err != nil {
			panic(err)
		}
		if _, err := fmt.Fprintln(os.Stdout, key); err != nil {
			os.Exit(0)
		}
	}
}

func roomy() kv.Quota { return kv.Quota{Keys: 1 << 20, Bytes: 1 << 30} }

func open(tb testing.TB, path string) *sqlitekv.Store {
	tb.Helper()
	s, err := sqlitekv.Open(tb.Context(), sqlitekv.Config{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	hosttest.TestKV(t, func(t *testing.T) kv.Store {
		t.Helper()
		return open(t, filepath.Join(t.TempDir(), "kv.db"))
	})
}

func TestStore_keeps(t *testing.T) {
	t.Parallel()
	// A name that a URL would take apart.
	path := filepath.Join(t.TempDir(), "a b?c=d&e#f%41.db")
	s, err := sqlitekv.Open(t.Context(), sqlitekv.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), "n", "k", []byte("v"), roomy()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, _, err := s.Get(t.Context(), "n", "k"); err == nil {
		t.Error("a closed store answered")
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is elsewhere: %v", err)
	}
	value, found, err := open(t, path).Get(t.Context(), "n", "k")
	if err != nil || !found || string(value) != "v" {
		t.Errorf("%q, %t, %v", value, found, err)
	}
}

func TestStore_private(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "modes of files mean nothing here")
	}
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "kv.db"))
	if err := s.Set(t.Context(), "n", "k", []byte("v"), roomy()); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitekv.Open(t.Context(), sqlitekv.Config{Path: shared}); err == nil || !strings.Contains(err.Error(), "use chmod 600") {
		t.Errorf("a file that others can read: %v", err)
	}
}

func TestOpen_refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refused := func(path, want string) {
		t.Helper()
		s, err := sqlitekv.Open(t.Context(), sqlitekv.Config{Path: path})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", path, err, want)
		}
	}
	refused("", "Path is empty")
	refused(filepath.Join(dir, "no", "folder"), "no such file")
	refused(dir, "directory")
	refused(os.DevNull, "name a file")

	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(text, "not a database")
	for name, statements := range map[string]string{
		"another program": "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)",
		"version 99":      "PRAGMA application_id = 0x6d6f6b76; PRAGMA user_version = 99",
	} {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), statements)
		if err := errors.Join(err, db.Close(), os.Chmod(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		refused(path, name)
	}
}

// TestStore_quotaOfTwo holds that two stores on one file keep one quota.
func TestStore_quotaOfTwo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kv.db")
	stores := []*sqlitekv.Store{open(t, path), open(t, path)}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			err := stores[i%2].Set(t.Context(), "n", fmt.Sprint(i), []byte("v"), kv.Quota{Keys: 7, Bytes: 1000})
			if err != nil && !errors.Is(err, host.ErrQuota) {
				t.Errorf("set: %v", err)
			}
		})
	}
	wg.Wait()
	keys, err := stores[0].List(t.Context(), "n", "", "", 100)
	if err != nil || len(keys) != 7 {
		t.Errorf("%q, %v", keys, err)
	}
}

// TestStore_waits holds that a writer waits for another one, until its context ends.
func TestStore_waits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kv.db")
	s := open(t, path)
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = s.Set(ctx, "n", "k", []byte("v"), roomy())
	if !errors.Is(err, context.DeadlineExceeded) || strings.Count(err.Error(), context.DeadlineExceeded.Error()) != 1 {
		t.Errorf("another writer holds the file: %v", err)
	}
	if _, found, err := s.Get(t.Context(), "n", "k"); found || err != nil {
		t.Errorf("reading waits for a writer: %t, %v", found, err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Set(t.Context(), "n", "k", []byte("v"), roomy()) }()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after the other writer: %v", err)
	}
}

// TestStore_killed kills two processes that write to one file, and looks for each
// key that they said was set.
func TestStore_killed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kv.db")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var promised []string
	for _, name := range []string{"a", "b"} {
		wg.Go(func() {
			keys := killedWriter(t, path, name)
			mu.Lock()
			defer mu.Unlock()
			promised = append(promised, keys...)
		})
	}
	wg.Wait()
	s := open(t, path)
	for _, key := range promised {
		value, found, err := s.Get(t.Context(), "n", key)
		if err != nil || !found || string(value) != strings.Repeat(key, 50) {
			t.Fatalf("%s: %d bytes, %t, %v", key, len(value), found, err)
		}
	}
	wantSums(t, path)
}

// killedWriter runs a writer, kills it in its work, and returns what it said.
func killedWriter(t *testing.T, path, name string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return nil
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), writerPath+"="+path, writerPath+"_NAME="+name)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	var keys []string
	lines := bufio.NewScanner(out)
	for len(keys) < 50 && lines.Scan() {
		keys = append(keys, lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Errorf("kill: %v", err)
	}
	for lines.Scan() { // what it said before it died counts too
		keys = append(keys, lines.Text())
	}
	_ = cmd.Wait() // killed
	if len(keys) < 50 {
		t.Errorf("the writer %s set %d keys, and failed with %.2000s", name, len(keys), &failure)
	}
	return keys
}

// wantSums compares the sums with what is there.
func wantSums(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var integrity string
	var keys, size, sumKeys, sumBytes int64
	err = errors.Join(db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&integrity),
		db.QueryRowContext(t.Context(), "SELECT count(*), sum(length(key) + length(value)) FROM kv").Scan(&keys, &size),
		db.QueryRowContext(t.Context(), "SELECT keys, bytes FROM usage").Scan(&sumKeys, &sumBytes))
	if err != nil || integrity != "ok" || keys != sumKeys || size != sumBytes || keys == 0 {
		t.Errorf("%s, %d keys of %d, %d bytes of %d, %v", integrity, sumKeys, keys, sumBytes, size, err)
	}
}
