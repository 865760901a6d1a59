package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
)

// Within returns the store inside a transaction of the caller, on the same database. What it applies is there when the transaction is
// committed, together with what the caller has written, and watchers are notified then; after a rollback it never was. A batch that is
// refused leaves the transaction as it was; any other error is for a rollback. Like the transaction, the store is not safe for concurrent
// use. A thread that was written to is locked until the transaction ends, so that it should end soon.
func (s *Store) Within(tx pgx.Tx) store.Store {
	return &Store{cfg: s.cfg, sql: s.sql, hub: s.hub, tx: tx}
}

// inside runs a statement in a savepoint of the transaction: one that fails does not end it.
func (s *Store) inside(ctx context.Context, run func(context.Context, *pgx.Conn) error) error {
	point, err := s.tx.Begin(ctx)
	if err != nil {
		return store.NotApplied(err) // the transaction has ended, or will not be committed
	}
	if err := run(ctx, s.tx.Conn()); err != nil {
		return errors.Join(err, point.Rollback(ctx))
	}
	return point.Commit(ctx)
}
