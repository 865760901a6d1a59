package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/storetest"
	"github.com/mortise-dev/mortise/store/viewtest"
)

var (
	shared  pgtest.Shared
	schemas atomic.Int64
)

// suite stops the server before goroutines are counted.
type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	if err := shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	viewtest.Child(openNamed)
	goleak.VerifyTestMain(suite{m})
}

// config has a new schema, which the end of the test drops.
func config(tb testing.TB) pgstore.Config {
	tb.Helper()
	c := pgstore.Config{URL: shared.URL(tb), Schema: fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1)), Conns: 4}
	tb.Cleanup(func() { sql(tb, c, `DROP SCHEMA IF EXISTS `+c.Schema+` CASCADE`) })
	return c
}

func open(tb testing.TB, c pgstore.Config) *pgstore.Store {
	tb.Helper()
	s, err := pgstore.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// sql runs statements on a connection of their own.
func sql(tb testing.TB, c pgstore.Config, text string) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	conn, err := pgx.Connect(ctx, c.URL)
	if err == nil {
		_, err = conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
		_ = conn.Close(ctx)
	}
	if err != nil {
		tb.Errorf("%s: %v", text, err)
	}
}

func twice(t *testing.T) (one, other store.Store) {
	t.Helper()
	c := config(t)
	return open(t, c), open(t, c)
}

func put(thread string, base uint64, cells ...store.Cell) store.Batch {
	return store.Batch{Thread: thread, Base: base, Put: cells}
}

// apply applies a small batch.
func apply(t *testing.T, s store.Store, thread string) {
	t.Helper()
	if _, err := store.ApplySurely(t.Context(), s, put(thread, store.AnyRevision, store.Cell{Kind: "a", Value: []byte("x")})); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.TestStore(t, twice)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	storetest.TestEvents(t, twice)
}

func TestModel(t *testing.T) {
	t.Parallel()
	one, other := twice(t) // the model uses names of its own in each round
	storetest.TestModel(t, func(*testing.T) (_, _ store.Store) { return one, other }, testskip.Rounds(60, 20))
}
