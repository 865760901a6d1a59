package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// begun begins one on a connection of its own.
func begun(t *testing.T, c pgstore.Config) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func cellBatch(thread, key, value string, sole bool) store.Batch {
	return store.Batch{
		Thread: thread, ID: "b-" + thread + key, Base: store.AnyRevision, Notify: []string{"topic"},
		Put: []store.Cell{{Kind: "k", Key: key, Value: []byte(value), Index: []store.IndexKey{{Name: "i", Key: key, Unique: sole}}}},
	}
}

func applied(t *testing.T, s store.Store, b store.Batch) {
	t.Helper()
	if _, err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func valueOf(t *testing.T, s store.Store, thread, key string) string {
	t.Helper()
	snapshot, err := s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All("k")}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := snapshot.Cell("k", key)
	return string(v)
}

// TestWithin: what is applied in a transaction of the caller exists with it, and not before.
func TestWithin(t *testing.T) {
	t.Parallel()
	for _, commit := range []bool{true, false} {
		c := config(t)
		s := open(t, c)
		sql(t, c, `CREATE TABLE `+c.Schema+`.orders (id int)`)
		watch, err := s.Watch(t.Context(), "topic")
		if err != nil {
			t.Fatal(err)
		}
		tx := begun(t, c)
		in := s.Within(tx)
		if _, err := tx.Exec(t.Context(), `INSERT INTO `+c.Schema+`.orders VALUES (1)`); err != nil {
			t.Fatal(err)
		}
		applied(t, in, cellBatch("t", "a", "one", true))
		if inside, outside := valueOf(t, in, "t", "a"), valueOf(t, s, "t", "a"); inside != "one" || outside != "" {
			t.Errorf("before the end there is %q inside and %q outside", inside, outside)
		}
		list, err := in.Scan(t.Context(), store.Scan{Index: "i", Limit: 10})
		counts, counted := in.Count(t.Context(), "i")
		if err != nil || counted != nil || len(list) != 1 || counts[""] != 1 {
			t.Errorf("inside are %v and %v, errors %v, %v", list, counts, err, counted)
		}
		select {
		case <-watch:
			t.Error("a watch was notified before the end")
		case <-time.After(50 * time.Millisecond):
		}
		end, want, rows := tx.Rollback, "", int64(0)
		if commit {
			end, want, rows = tx.Commit, "one", 1
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := valueOf(t, s, "t", "a"); got != want {
			t.Errorf("after the end there is %q, want %q", got, want)
		}
		if n := number(t, c, `SELECT count(*) FROM `+c.Schema+`.orders`); n != rows {
			t.Errorf("the caller's table has %d rows, want %d", n, rows)
		}
		if !commit {
			continue
		}
		select {
		case <-watch:
		case <-time.After(5 * time.Second):
			t.Error("no watch was notified")
		}
	}
}

// TestWithin_refused: a batch that is refused leaves the transaction as it was.
func TestWithin_refused(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	applied(t, s, cellBatch("other", "a", "theirs", true))
	tx := begun(t, c)
	in := s.Within(tx)
	if _, err := in.Apply(t.Context(), cellBatch("t", "a", "ours", true)); !errors.Is(err, store.ErrExists) {
		t.Errorf("a place that is taken: %v", err)
	}
	stale := cellBatch("t", "b", "ours", false)
	stale.Base = 7
	if _, err := in.Apply(t.Context(), stale); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another revision: %v", err)
	}
	applied(t, in, cellBatch("t", "c", "ours", true))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := valueOf(t, s, "t", "c"); got != "ours" {
		t.Errorf("there is %q", got)
	}
	if _, err := in.Apply(t.Context(), cellBatch("t", "d", "late", false)); err == nil {
		t.Error("a batch after the end was accepted")
	}
}
