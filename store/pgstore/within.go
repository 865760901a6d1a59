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
	return within{inner: &Store{cfg: s.cfg, sql: s.sql, tx: tx}, outer: s}
}

// within is a store inside a transaction. It waits for notifications outside.
type within struct{ inner, outer *Store }

func (w within) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	return w.inner.Read(ctx, thread, q)
}

func (w within) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	return w.inner.Apply(ctx, b)
}

func (w within) Scan(ctx context.Context, q store.Scan) ([]store.Ref, error) {
	return w.inner.Scan(ctx, q)
}

func (w within) Count(ctx context.Context, index string) (map[string]int, error) {
	return w.inner.Count(ctx, index)
}

func (w within) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	return w.outer.Watch(ctx, topic)
}

// inside runs a statement in a savepoint of the transaction: one that fails does not end it.
func (s *Store) inside(ctx context.Context, run func(context.Context, *pgx.Conn) error) error {
	point, err := s.tx.Begin(ctx)
	if err != nil {
		return err
	}
	if err := run(ctx, s.tx.Conn()); err != nil {
		return errors.Join(err, point.Rollback(ctx))
	}
	return point.Commit(ctx)
}

// notifyInside lets the server notify of topics when the transaction is committed.
func (s *Store) notifyInside(ctx context.Context, topics []string) error {
	if len(topics) == 0 {
		return nil
	}
	return s.write(ctx, "notify", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, s.sql.notify, payloads(topics))
		return err
	})
}
