package sqlitekv

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modernc.org/sqlite"
)

// Codes of SQLite for a file that another connection has locked. The low byte of a
// code describes what it is.
const (
	busy   = 5
	locked = 6
)

// How long to wait before another try, at first and at most.
const (
	firstWait = time.Millisecond
	lastWait  = 50 * time.Millisecond
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

// retry tries again for as long as another connection is in the way, until ctx ends.
func retry(ctx context.Context, run func() error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := run()
		if err == nil || !inTheWay(err) {
			if ctx.Err() != nil && err != nil {
				return errors.Join(ctx.Err(), err)
			}
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func inTheWay(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == busy || e.Code()&0xff == locked)
}
