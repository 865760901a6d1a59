package tables

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tables are those of one schema.
type Tables struct {
	pool   *pgxpool.Pool
	schema string
	// existing refuses tables that are not there, in place of making them.
	existing bool
	// text remembers statements with the schema put in.
	text sync.Map
}

// New makes the tables of a schema. With existing [Tables.Migrate] makes and changes nothing.
func New(pool *pgxpool.Pool, schema string, existing bool) *Tables {
	return &Tables{pool: pool, schema: schema, existing: existing}
}

// Schema is the name of the schema.
func (s *Tables) Schema() string { return s.schema }

// SQL puts the schema into a statement, in place of each "@.".
func (s *Tables) SQL(statement string) string {
	if done, ok := s.text.Load(statement); ok {
		return done.(string) //nolint:errcheck,forcetypeassert // it holds nothing else
	}
	done := strings.ReplaceAll(statement, "@.", pgx.Identifier{s.schema}.Sanitize()+".")
	s.text.Store(statement, done)
	return done
}

// Key is the number of an advisory lock.
func (s *Tables) Key(what string) int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "mortise/%s/%s", s.schema, what)
	return int64(h.Sum64()) //nolint:gosec // any number will do
}

// Exec runs one statement in a transaction of its own.
func (s *Tables) Exec(ctx context.Context, sql string, args ...any) error {
	return s.Write(ctx, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

// Tx is a transaction, whose statements have "@." for the schema.
type Tx struct {
	tx pgx.Tx
	s  *Tables
}

// Name is that of a table or a sequence, with its schema.
func (t Tx) Name(of string) string { return pgx.Identifier{t.s.schema, of}.Sanitize() }

// Exec runs a statement, and says how many rows it changed.
func (t Tx) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := t.tx.Exec(ctx, t.s.SQL(sql), args...)
	return tag.RowsAffected(), err //nolint:wrapcheck // the package above does
}

// One reads one row into the targets, and says whether there is one.
func (t Tx) One(ctx context.Context, sql string, args []any, to ...any) (found bool, err error) {
	err = t.tx.QueryRow(ctx, t.s.SQL(sql), args...).Scan(to...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err //nolint:wrapcheck // as above
}

// Each calls row for each row that is read, with what scans it.
func (t Tx) Each(ctx context.Context, row func(scan func(...any) error) error, sql string, args ...any) error {
	rows, err := t.tx.Query(ctx, t.s.SQL(sql), args...)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err() //nolint:wrapcheck // as above
}

// Lock lets one transaction at a time go on that locks the same, until its end.
func (t Tx) Lock(ctx context.Context, what string) error {
	_, err := t.tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, t.s.Key(what))
	return err //nolint:wrapcheck // as above
}

// Write makes a transaction: all of it is durable when it returns nil.
func (s *Tables) Write(ctx context.Context, do func(context.Context, Tx) error) error {
	return s.run(ctx, pgx.TxOptions{}, do)
}

// Read makes a transaction that sees one moment, and writes nothing.
func (s *Tables) Read(ctx context.Context, do func(context.Context, Tx) error) error {
	return s.run(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

// tries is how often a transaction is begun.
const tries = 5

func (s *Tables) run(ctx context.Context, options pgx.TxOptions, do func(context.Context, Tx) error) error {
	for n := 0; ; n++ {
		err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error { return do(ctx, Tx{tx, s}) })
		if n+1 == tries || !again(err) || !pause(ctx, n) {
			return err //nolint:wrapcheck // the package above does
		}
	}
}

// again says whether an error leaves everything as it was and may be gone the next time: a serialization failure, a deadlock, or a
// connection that broke before anything was sent.
func again(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01") || err != nil && pgconn.SafeToRetry(err)
}

// pause waits a little, longer each time.
func pause(ctx context.Context, n int) bool {
	most := int64(time.Millisecond) << n
	timer := time.NewTimer(time.Duration(most/2 + rand.Int64N(most))) //nolint:gosec // not a secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
