package sqlitekv

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/sqlitefile"
)

// write runs a transaction that holds the write lock from its start.
func (s *Store) write(ctx context.Context, run func(tx *sql.Tx) error) error {
	return retry(ctx, func() error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := run(tx); err != nil {
			_ = tx.Rollback() // the first error is the one to tell
			return err
		}
		return tx.Commit()
	})
}

// lastPause is the longest between two attempts: each begins a transaction.
const lastPause = 50 * time.Millisecond

// retry tries again for as long as another connection is in the way, until ctx ends.
func retry(ctx context.Context, run func() error) error {
	err := sqlitefile.Retry(ctx, lastPause, run)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) { // SQLite may have been interrupted
		return errors.Join(ctx.Err(), err)
	}
	return err
}
