package sessionstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// CallTime bounds how long a call waits for others and for the server.
const CallTime = 10 * time.Second

//go:embed schema/*.sql
var scripts embed.FS

var (
	errClosed = errors.New("the store is closed")
	errTime   = fmt.Errorf("the server did not answer within %s", CallTime)
)

// Store is a session.Store in PostgreSQL.
type Store struct {
	tables *tables.Tables
	// base is what the time of a call hangs on: calls have no context of their own.
	base   context.Context //nolint:containedctx // see there
	closed atomic.Bool
}

var _ session.Store = (*Store)(nil)

// New brings the tables of sessions in the store's schema to the current version.
func New(ctx context.Context, s *pgstore.Store) (*Store, error) {
	if err := s.Tables().Migrate(ctx, "session_migration", scripts); err != nil {
		return nil, fmt.Errorf("sessionstore: %w", err)
	}
	return &Store{tables: s.Tables(), base: context.WithoutCancel(ctx)}, nil
}

// Close implements session.Store. The connections stay open.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

type (
	job = func(context.Context, tables.Tx) error
	run = func(context.Context, job) error
)

// call runs one call, in its time.
func (s *Store) call(run run, do job) error {
	if s.closed.Load() {
		return errClosed
	}
	ctx, cancel := context.WithTimeoutCause(s.base, CallTime, errTime)
	defer cancel()
	err := run(ctx, do)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		err = errTime
	}
	return err
}

// number is that of a thread, 0 if there is none.
func number(ctx context.Context, tx tables.Tx, thread string) (n int64, err error) {
	_, err = tx.One(ctx, `SELECT number FROM @.session_thread WHERE thread = $1`, []any{[]byte(thread)}, &n)
	return n, err
}

// locked is the number of a thread that nobody else writes to until the end of the transaction, 0 if there is none.
func locked(ctx context.Context, tx tables.Tx, thread string) (n int64, err error) {
	_, err = tx.One(ctx, `SELECT number FROM @.session_thread WHERE thread = $1 FOR UPDATE`, []any{[]byte(thread)}, &n)
	return n, err
}

// numbered is locked, and makes the thread if it is not there.
func numbered(ctx context.Context, tx tables.Tx, thread string) (int64, error) {
	n, err := locked(ctx, tx, thread)
	if err != nil || n != 0 {
		return n, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO @.session_thread (thread) VALUES ($1) ON CONFLICT DO NOTHING`, []byte(thread)); err != nil {
		return 0, err
	}
	return locked(ctx, tx, thread)
}

func wrap(thread string, err error) error {
	if err == nil || errors.Is(err, compaction.ErrConflict) {
		return err
	}
	return fmt.Errorf("sessionstore: thread %.80q: %w", thread, err)
}
