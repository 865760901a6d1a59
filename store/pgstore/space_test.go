package pgstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// number returns what a query of a schema selects.
func number(t *testing.T, c pgstore.Config, text string, args ...any) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err == nil {
		err = conn.QueryRow(t.Context(), text, args...).Scan(&n)
		_ = conn.Close(context.WithoutCancel(t.Context()))
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// tables lists the tables that have parts of threads and of streams.
func tables(t *testing.T, c pgstore.Config) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, err := conn.Query(t.Context(), `SELECT tablename::text FROM pg_tables
		WHERE schemaname = $1 AND tablename <> 'schema_version'`, c.Schema)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(list) < 6 {
		t.Fatalf("tables %q, %v", list, err)
	}
	return list
}

// TestDropLeavesNothing holds that no table has a row of a dropped thread and its events. The space of the rows is the server's: its
// autovacuum, which the tables ask for early, has later rows use it.
func TestDropLeavesNothing(t *testing.T) {
	t.Parallel()
	const threads = 100
	c := config(t)
	s := open(t, c)
	for i := range threads {
		b := put(fmt.Sprint("t", i), 0, store.Cell{Kind: "a", Value: make([]byte, 1000), Index: []store.IndexKey{{Name: "u", Key: fmt.Sprint(i), Unique: true}}})
		b.ID, b.Append = "id", []store.Entry{{Log: "l", Data: make([]byte, 1000)}, {Log: "l"}}
		_, err := s.Apply(t.Context(), b)
		if err == nil {
			_, err = s.AppendEvents(t.Context(), store.EventBatch{Stream: b.Thread, First: 1, Last: 2, Data: make([]byte, 1000)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rows := func(table string) int64 { return number(t, c, `SELECT count(*) FROM `+c.Schema+`.`+table) }
	all := tables(t, c)
	for _, table := range all {
		if n := rows(table); n < threads {
			t.Errorf("table %s has %d rows", table, n)
		}
	}
	for i := range threads {
		_, err := s.Apply(t.Context(), store.Batch{Thread: fmt.Sprint("t", i), Base: store.AnyRevision, Drop: true})
		if err == nil {
			err = s.DropEvents(t.Context(), fmt.Sprint("t", i))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range all {
		if n := rows(table); n != 0 {
			t.Errorf("table %s has %d rows of dropped threads", table, n)
		}
	}
}
