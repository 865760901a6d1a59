package engine_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// migratorPath makes this test binary a process that migrates a file until it is killed.
const migratorPath = "MORTISE_TEST_SQLITE_MIGRATOR"

func TestMain(m *testing.M) {
	if path := os.Getenv(migratorPath); path != "" {
		migrateForEver(path)
	}
	goleak.VerifyTestMain(m)
}

func schema(steps ...string) engine.Schema { return engine.Schema{Name: "test", Steps: steps} }

const table = "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)"

func open(t *testing.T, path string, steps ...string) *engine.File {
	t.Helper()
	f, err := engine.Open(t.Context(), engine.Config{Path: path})
	must(t, err)
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must(t, f.Migrate(t.Context(), schema(steps...)))
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func insert(text string) func(*engine.Conn) error {
	return func(c *engine.Conn) error {
		_, err := c.Exec("INSERT INTO t (text) VALUES (?)", text)
		return err
	}
}

// count counts the rows of a table, or is -1 if there is none.
func count(t *testing.T, f *engine.File, name string) int {
	t.Helper()
	n := -1
	must(t, f.Read(t.Context(), func(c *engine.Conn) error {
		there := false
		if err := c.Query(func(*engine.Row) { there = true }, "SELECT 1 FROM sqlite_schema WHERE name = ?", name); err != nil || !there {
			return err
		}
		return c.Query(func(r *engine.Row) { n = int(r.Int()) }, "SELECT count(*) FROM "+name)
	}))
	return n
}

// block takes the file as another process would.
func block(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_txlock=immediate")
	must(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	return func() {
		t.Helper()
		must(t, errors.Join(tx.Rollback(), db.Close()))
	}
}

// TestFile_groups holds that writes that come together are one transaction, and that those that
// fail take none of the others with them.
func TestFile_groups(t *testing.T) {
	t.Parallel()
	const writers = 60
	path := filepath.Join(t.TempDir(), "file.db")
	f := open(t, path, table)
	before := f.Commits()
	release := block(t, path)
	refused := errors.New("refused")
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			errs[i] = f.Write(t.Context(), func(c *engine.Conn) error {
				if err := insert(fmt.Sprint("row ", i))(c); err != nil {
					return err
				}
				switch i % 5 {
				case 0:
					return refused
				case 1:
					return insert(fmt.Sprint("row ", i))(c)
				default:
					return nil
				}
			})
		})
	}
	for f.Queued() < writers {
		runtime.Gosched()
	}
	release()
	wg.Wait()
	for i, err := range errs {
		if (i%5 == 0) != errors.Is(err, refused) || (i%5 == 1) != engine.IsConstraint(err) || i%5 > 1 && err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if n := count(t, f, "t"); n != writers*3/5 {
		t.Errorf("%d rows of %d", n, writers*3/5)
	}
	if n := f.Commits() - before; n != 1 {
		t.Errorf("%d writes took %d transactions", writers, n)
	}
}

// TestFile_soft holds that writes nobody waits for on the disk are not flushed, that one of the others
// is, with those before it, and that all come in their order.
func TestFile_soft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file.db")
	f := open(t, path, table)
	if n := f.SoftCommits(); n != 0 {
		t.Errorf("%d transactions were not flushed before anybody asked for that", n)
	}
	for i := range 3 {
		must(t, f.WriteSoft(t.Context(), insert(fmt.Sprint("soft ", i))))
	}
	must(t, f.Write(t.Context(), insert("hard")))
	if soft := f.SoftCommits(); soft != 3 {
		t.Errorf("%d of 3 transactions were not flushed", soft)
	}
	release := block(t, path)
	before, soft := f.Commits(), f.SoftCommits()
	var wg sync.WaitGroup
	for i, write := range []func(context.Context, func(*engine.Conn) error) error{f.WriteSoft, f.Write, f.WriteSoft} {
		wg.Go(func() { must(t, write(t.Context(), insert(fmt.Sprint("queued ", i)))) })
		for f.Queued() <= i {
			runtime.Gosched()
		}
	}
	release()
	wg.Wait()
	// Whether the first was alone when its transaction began is a matter of luck; the second is flushed.
	if all, soft := f.Commits()-before, f.SoftCommits()-soft; all-soft != 1 {
		t.Errorf("of %d transactions %d were not flushed", all, soft)
	}
	var got []string
	must(t, f.Read(t.Context(), func(c *engine.Conn) error {
		got = nil
		return c.Query(func(r *engine.Row) { got = append(got, r.Text()) }, "SELECT text FROM t ORDER BY id")
	}))
	if want := []string{"soft 0", "soft 1", "soft 2", "hard", "queued 0", "queued 1", "queued 2"}; !slices.Equal(got, want) {
		t.Errorf("written in the order %q", got)
	}
	if err := f.WriteSoft(t.Context(), insert("hard")); !engine.IsConstraint(err) {
		t.Errorf("a soft write that is refused: %v", err)
	}
}

// TestFile_withdrawn holds that a write whose context ends while it waits is not made later.
func TestFile_withdrawn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file.db")
	f := open(t, path, table)
	release := block(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Write(ctx, insert("never")) }()
	for f.Queued() == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("withdrawn: %v", err)
	}
	release()
	must(t, f.Write(t.Context(), insert("later")))
	if n := count(t, f, "t"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestFile_full holds that a disk that is full fails the writes that it has no room for, leaves the file whole and lets others in when there
// is room again.
func TestFile_full(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "file.db"), table)
	limit := func(pages string) {
		must(t, f.Write(t.Context(), func(c *engine.Conn) error { return c.Query(func(*engine.Row) {}, "PRAGMA max_page_count = "+pages) }))
	}
	limit("10")
	err := f.Write(t.Context(), insert(strings.Repeat("x", 1<<20)))
	if err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("written to a full disk: %v", err)
	}
	limit("100000")
	must(t, f.Write(t.Context(), insert(strings.Repeat("x", 1<<20))))
	if n := count(t, f, "t"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestFile_panic(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "file.db"), table)
	func() {
		defer func() {
			if p := recover(); p != "oh" {
				t.Errorf("whoever asked got %v", p)
			}
		}()
		_ = f.Write(t.Context(), func(c *engine.Conn) error {
			_ = insert("half")(c)
			panic("oh")
		})
	}()
	must(t, f.Write(t.Context(), insert("whole")))
	if n := count(t, f, "t"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestFile_gone holds that what ends its goroutine while it writes leaves nothing, and the file to the others.
func TestFile_gone(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "file.db"), table)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = f.Write(t.Context(), func(c *engine.Conn) error {
			_ = insert("half")(c)
			runtime.Goexit()
			return nil
		})
	})
	wg.Wait()
	must(t, f.Write(t.Context(), insert("whole")))
	if n := count(t, f, "t"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestMigrate_whole holds that a step that fails leaves nothing, and that the next attempt goes on
// from the version before it.
func TestMigrate_whole(t *testing.T) {
	t.Parallel()
	f := open(t, filepath.Join(t.TempDir(), "file.db"), table)
	must(t, f.Write(t.Context(), insert("kept")))
	err := f.Migrate(t.Context(), schema(table, "CREATE TABLE u (x); INSERT INTO nowhere VALUES (1)"))
	if err == nil || !strings.Contains(err.Error(), "step 2") {
		t.Errorf("a step that cannot be: %v", err)
	}
	if count(t, f, "u") != -1 {
		t.Error("half of the step is there")
	}
	must(t, f.Migrate(t.Context(), schema(table, "CREATE TABLE u (x)", "INSERT INTO u VALUES (1)")))
	must(t, f.Migrate(t.Context(), schema(table, "CREATE TABLE u (x)", "INSERT INTO u VALUES (1)")))
	if count(t, f, "t") != 1 || count(t, f, "u") != 1 {
		t.Errorf("%d and %d rows", count(t, f, "t"), count(t, f, "u"))
	}
	if err := f.Migrate(t.Context(), schema(table)); err == nil || !strings.Contains(err.Error(), "version 3, and this program knows 1") {
		t.Errorf("a newer file: %v", err)
	}
}

// long is a step that takes a while.
const long = "CREATE TABLE u (x); INSERT INTO u WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000) SELECT x FROM n; SELECT * FROM missing"

func migrateForEver(path string) {
	for {
		f, err := engine.Open(context.Background(), engine.Config{Path: path})
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, "step")
		_ = f.Migrate(context.Background(), schema(table, long))
		_ = f.Close(context.Background())
	}
}

// TestMigrate_killed kills processes in the middle of a step.
func TestMigrate_killed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file.db")
	must(t, open(t, path, table).Write(t.Context(), insert("kept")))
	self, err := os.Executable()
	must(t, err)
	for range 3 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), migratorPath+"="+path)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("the process said nothing: %v", err)
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
	}
	f := open(t, path, table, "CREATE TABLE u (x)")
	if count(t, f, "t") != 1 || count(t, f, "u") != 0 {
		t.Errorf("%d and %d rows", count(t, f, "t"), count(t, f, "u"))
	}
}
