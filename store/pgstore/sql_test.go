package pgstore_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store/pgstore"
)

// connect is a connection of a test's own.
func connect(tb testing.TB, c pgstore.Config) *pgx.Conn {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	conn, err := pgx.Connect(ctx, c.URL)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

// exec runs a statement behind the store's back.
func exec(tb testing.TB, c pgstore.Config, sql string, args ...any) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	conn, err := pgx.Connect(ctx, c.URL)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = conn.Exec(ctx, sql, args...)
	if err != nil {
		tb.Error(err)
	}
	if err := conn.Close(ctx); err != nil {
		tb.Error(err)
	}
}
