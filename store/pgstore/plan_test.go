package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// fill adds indexed cells to a schema, of a group, one thread for each thousand of them.
func fill(tb testing.TB, c pgstore.Config, n int) {
	tb.Helper()
	sql(tb, c, fmt.Sprintf(`SET search_path = %s;
		INSERT INTO thread SELECT i, convert_to('t' || i, 'UTF8'), i, '{}', '{}' FROM generate_series(1000000000, 1000000000 + %d / 1000) i;
		INSERT INTO cell SELECT 1000000000 + i / 1000, 'k', convert_to(i::text, 'UTF8'), 'v' FROM generate_series(1, %[2]d) i;
		INSERT INTO place SELECT 1000000000 + i / 1000, 'k', convert_to(i::text, 'UTF8'),
			substring(sha256('due'), 1, 8) || substring(sha256('g'), 1, 16), 'g', convert_to(to_char(i / 3, 'FM000000000'), 'UTF8'),
			convert_to('t' || (1000000000 + i / 1000), 'UTF8') || '\x0001'::bytea || 'k' || '\x0001'::bytea || convert_to(i::text, 'UTF8'), false
		FROM generate_series(1, %[2]d) i`, c.Schema, n))
}

// TestPlans holds that calls read what they return and little more, whether the planner knows the tables or not.
func TestPlans(t *testing.T) {
	t.Parallel()
	const cells = 50_000
	c := config(t)
	c.Conns = 1
	s := open(t, c)
	apply(t, s, "t") // plans are made for empty tables
	call := func() {
		t.Helper()
		after := store.Ref{IndexKey: "000010000", Thread: "t1000000030", Kind: "k", Key: "30001"}
		q := store.Scan{Index: "due", Group: "g", From: "000009000", To: "000012000", After: after, Limit: 20, Values: true}
		list, err := s.Scan(t.Context(), q)
		if err == nil && (len(list) != 20 || list[0].Key != "30002" || string(list[0].Value) != "v" || list[0].Thread != "t1000000030") {
			err = fmt.Errorf("got %d, the first %+v", len(list), list[0])
		}
		if err == nil {
			_, err = s.Read(t.Context(), "t1000000030", store.Query{Cells: []store.Range{{Kind: "k", From: "30", Limit: 10}}})
		}
		if err == nil {
			_, err = s.Apply(t.Context(), store.Batch{
				Thread: "t1000000030", Base: store.AnyRevision, Delete: []store.Range{store.All("none")},
				Put: []store.Cell{{Kind: "n", Key: "n", Index: []store.IndexKey{{Name: "due", Group: "g", Key: fmt.Sprint(time.Now().UnixNano())}}}},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _ = s.Scan(t.Context(), store.Scan{Index: "due", Group: "g", Limit: 1})
	fill(t, c, cells)
	for _, analyze := range []bool{false, true} {
		if analyze {
			sql(t, c, `ANALYZE `+c.Schema+`.place; ANALYZE `+c.Schema+`.cell; ANALYZE `+c.Schema+`.thread`)
		}
		before := touched(t, c)
		for range 8 {
			call()
		}
		if n := touched(t, c) - before; n > 8*400 {
			t.Errorf("analyzed %v: calls read %d rows and index entries", analyze, n)
		}
	}
}

// touched returns how many rows and index entries of a schema were read.
func touched(t *testing.T, c pgstore.Config) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	const rows = `SELECT sum(seq_tup_read) + sum(idx_tup_fetch) FROM pg_stat_user_tables WHERE schemaname = $1`
	const entries = `SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1`
	for _, text := range []string{rows, entries} {
		<-time.After(1200 * time.Millisecond) // processes report once a second
		var part int64
		if err := conn.QueryRow(t.Context(), text, c.Schema).Scan(&part); err != nil {
			t.Fatal(err)
		}
		n += part
	}
	return n
}

// transaction does the same work as a batch of BenchmarkApply, as a program without the store would.
func transaction(ctx context.Context, conn *pgx.Conn, schema, key string, value []byte) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var id, last int64
		if err := tx.QueryRow(ctx, `SELECT id FROM `+schema+`.thread WHERE name = $1 FOR UPDATE`, []byte("t")).Scan(&id); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `UPDATE `+schema+`.log SET last = last + 1 WHERE thread = $1 RETURNING last`, id).Scan(&last); err != nil {
			return err
		}
		ref := []byte("reference" + key)
		for text, args := range map[string][]any{
			`INSERT INTO ` + schema + `.cell VALUES ($1, 'a', $2, $3)`:                                     {id, []byte(key), value},
			`INSERT INTO ` + schema + `.place VALUES ($1, 'a', $2, $3, 'g', $2, $4, false)`:                {id, []byte(key), make([]byte, 24), ref},
			`INSERT INTO ` + schema + `.entry VALUES ($1, 'l', $2, $3)`:                                    {id, last, value},
			`UPDATE ` + schema + `.thread SET revision = nextval('` + schema + `.revision') WHERE id = $1`: {id},
		} {
			if _, err := tx.Exec(ctx, text, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// bare does it in one statement.
const bare = `WITH h AS (UPDATE @.thread SET revision = nextval('@.revision') WHERE name = $1::bytea RETURNING id, revision),
	c AS (INSERT INTO @.cell SELECT id, 'a', $2::bytea, $3::bytea FROM h),
	p AS (INSERT INTO @.place SELECT id, 'a', $2::bytea, $4::bytea, 'g', $2::bytea, $5::bytea, false FROM h),
	l AS (UPDATE @.log SET last = last + 1 WHERE thread = (SELECT id FROM h) RETURNING last),
	e AS (INSERT INTO @.entry SELECT id, 'l', last, $3::bytea FROM h, l) SELECT revision FROM h`

func BenchmarkApply(b *testing.B) {
	c := config(b)
	s := open(b, c)
	value := make([]byte, 500)
	key := func(n int) string { return fmt.Sprintf("%09d", n) }
	first := store.Batch{Thread: "t", Base: store.AnyRevision, Append: []store.Entry{{Log: "l"}}}
	if _, err := s.Apply(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	conn, err := pgx.Connect(b.Context(), c.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(b.Context())) }()
	n := 0
	for _, notify := range [][]string{nil, {"topic"}} {
		b.Run(fmt.Sprint("store/topics=", len(notify)), func(b *testing.B) {
			for b.Loop() {
				n++
				batch := store.Batch{
					Thread: "t", ID: key(n), Base: store.AnyRevision, Notify: notify, Append: []store.Entry{{Log: "l", Data: value}},
					Put: []store.Cell{{Kind: "a", Key: key(n), Value: value, Index: []store.IndexKey{{Name: "i", Group: "g", Key: key(n)}}}},
				}
				if _, err := s.Apply(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("transaction", func(b *testing.B) {
		for b.Loop() {
			n++
			if err := transaction(b.Context(), conn, c.Schema, key(n), value); err != nil {
				b.Fatal(err)
			}
		}
	})
	text := strings.ReplaceAll(bare, "@.", c.Schema+".")
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			n++
			var revision int64
			args := []any{[]byte("t"), []byte(key(n)), value, make([]byte, 24), []byte("reference" + key(n))}
			if err := conn.QueryRow(b.Context(), text, args...).Scan(&revision); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkApply_parallel has writers of a thread each, on a server that flushes.
func BenchmarkApply_parallel(b *testing.B) {
	server, err := pgtest.New(b.Context())
	pgtest.Need(b, err)
	b.Cleanup(func() { _ = server.Close() })
	s := open(b, pgstore.Config{URL: server.URL()})
	var threads atomic.Int64
	for _, notify := range [][]string{nil, {"topic"}} {
		b.Run(fmt.Sprint("topics=", len(notify)), func(b *testing.B) {
			b.SetParallelism(4)
			b.RunParallel(func(p *testing.PB) {
				thread := fmt.Sprint("t", threads.Add(1))
				for p.Next() {
					batch := put(thread, store.AnyRevision, store.Cell{Kind: "a", Value: make([]byte, 500)})
					batch.Notify = notify
					if _, err := s.Apply(b.Context(), batch); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, cells := range []int{1_000, 100_000, 1_000_000} {
		if cells > 100_000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprint(cells), func(b *testing.B) {
			c := config(b)
			s := open(b, c)
			fill(b, c, cells)
			for b.Loop() {
				list, err := s.Scan(b.Context(), store.Scan{Index: "due", Group: "g", Limit: 20})
				if err != nil || len(list) != 20 {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}
