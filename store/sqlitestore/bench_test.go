package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// step is a batch like those of a run: it changes a cell with two index keys, and appends an entry.
func step(thread string, n int64) store.Batch {
	return store.Batch{
		Thread: thread, ID: fmt.Sprint("batch ", n), Base: store.AnyRevision,
		Put: []store.Cell{{
			Kind: "run", Key: "r", Value: make([]byte, 300),
			Index: []store.IndexKey{{Name: "due", Group: "g", Key: store.Number(n)}, {Name: "status", Group: "active", Key: "r"}},
		}},
		Append: []store.Entry{{Log: "messages", Data: make([]byte, 500)}},
	}
}

func benchOpen(b *testing.B) *sqlitestore.Store {
	b.Helper()
	s, err := sqlitestore.Open(b.Context(), sqlitestore.Config{Path: filepath.Join(b.TempDir(), "store.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkApply has one writer.
func BenchmarkApply(b *testing.B) {
	s := benchOpen(b)
	var n int64
	for b.Loop() {
		n++
		if _, err := s.Apply(b.Context(), step(fmt.Sprint("thread ", n%100), n)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply_concurrent has eight writers.
func BenchmarkApply_concurrent(b *testing.B) {
	s := benchOpen(b)
	before := s.Commits()
	var n atomic.Int64
	b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		thread := fmt.Sprint("thread ", n.Add(1))
		for pb.Next() {
			if _, err := s.Apply(b.Context(), step(thread, n.Add(1))); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(s.Commits()-before)*8/float64(b.N), "commits/8batches")
}

// BenchmarkRead reads a cell and the entries of a log.
func BenchmarkRead(b *testing.B) {
	s := benchOpen(b)
	if _, err := s.Apply(b.Context(), step("thread", 1)); err != nil {
		b.Fatal(err)
	}
	q := store.Query{Cells: []store.Range{store.One("run", "r")}, Entries: []store.Span{{Log: "messages", From: 1, Limit: 10}}}
	for b.Loop() {
		if _, err := s.Read(b.Context(), "thread", q); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBare does what BenchmarkApply does with the fewest statements: what SQLite itself costs.
func BenchmarkBare(b *testing.B) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(b.Context(), `
		CREATE TABLE thread (name, revision, PRIMARY KEY (name)) WITHOUT ROWID;
		CREATE TABLE cell (thread, key, value, PRIMARY KEY (thread, key)) WITHOUT ROWID;
		CREATE TABLE place (name, grp, key, thread, PRIMARY KEY (name, grp, key, thread)) WITHOUT ROWID;
		CREATE TABLE entry (thread, seq, data, PRIMARY KEY (thread, seq)) WITHOUT ROWID`)
	if err != nil {
		b.Fatal(err)
	}
	texts := []string{
		"INSERT OR REPLACE INTO thread VALUES (?1, ?2)", "INSERT OR REPLACE INTO cell VALUES (?1, 'r', ?3)",
		"DELETE FROM place WHERE name = 'due' AND grp = 'g' AND key = ?2 - 100 AND thread = ?1", "INSERT INTO place VALUES ('due', 'g', ?2, ?1)",
		"INSERT INTO entry VALUES (?1, ?2, ?3)",
	}
	stmts := make([]*sql.Stmt, len(texts))
	for i, text := range texts {
		if stmts[i], err = db.PrepareContext(b.Context(), text); err != nil { //nolint:sqlclosecheck // below
			b.Fatal(err)
		}
	}
	ctx := context.WithoutCancel(b.Context())
	defer func() {
		for _, s := range stmts {
			_ = s.Close()
		}
	}()
	var n int64
	for b.Loop() {
		n++
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range stmts {
			thread := fmt.Appendf(nil, "thread %d", n%100)
			in := tx.StmtContext(ctx, s) //nolint:sqlclosecheck // the transaction does
			if _, err := in.ExecContext(ctx, thread, n, make([]byte, 500)); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}
