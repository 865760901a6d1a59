package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mortise-dev/mortise/mailbox"
)

// tries is how often a statement or a transaction is begun.
const tries = 5

// SQLSTATE codes.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnique        = "23505"
	codeNotNull       = "23502"
)

// errAgain is a failure before anything was written.
var errAgain = errors.New("nothing was written")

// try runs a function with a connection, again if it failed without having changed
// anything.
func (s *Store) try(ctx context.Context, run func(*pgx.Conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var err error
	for n := range tries {
		if err = s.once(ctx, run); !again(err) || ctx.Err() != nil {
			return err
		}
		if !pause(ctx, n) {
			break
		}
	}
	return err
}

// read is try for what only reads.
func (s *Store) read(ctx context.Context, run func(*pgx.Conn) error) error {
	return s.try(ctx, func(c *pgx.Conn) error { return s.harmless(ctx, c, run(c)) })
}

// harmless marks an error that came before anything was written, if the connection broke.
func (s *Store) harmless(ctx context.Context, c *pgx.Conn, err error) error {
	if err == nil || !c.IsClosed() || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errAgain, err)
}

func (s *Store) once(ctx context.Context, run func(*pgx.Conn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release() // which closes a connection that broke, or is still in a transaction
	err = run(c.Conn())
	switch {
	case err == nil:
	case c.Conn().IsClosed():
		if ctx.Err() == nil {
			s.pool.Reset() // the server went away: the others are broken, too
			s.recent.clear()
		}
	case c.Conn().PgConn().TxStatus() != 'I':
		_, rollback := c.Exec(context.WithoutCancel(ctx), `ROLLBACK`)
		_ = rollback // the connection is closed then
	}
	return err
}

// again says whether an error leaves everything as it was and may be gone the next time.
func again(err error) bool {
	if errors.Is(err, errAgain) {
		return true
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == codeSerialization || pg.Code == codeDeadlock)
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

// refusal translates what the tables refuse.
func refusal(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch {
	case pg.Code == codeUnique && pg.ConstraintName == "thread_pkey":
		return fmt.Errorf("%w: %w", errAgain, err)
	case pg.Code == codeUnique && pg.ConstraintName == "dispatch_dedupe":
		return fmt.Errorf("dedupe key: %w", mailbox.ErrExists)
	case pg.Code == codeNotNull && pg.ColumnName == "thread":
		return fmt.Errorf("%s: %w in another thread", pg.TableName, mailbox.ErrExists)
	case pg.Code == codeUnique && pg.ConstraintName == "dispatch_claimed":
		return fmt.Errorf("a second claim: %w", mailbox.ErrConflict)
	case pg.Code == codeUnique && pg.TableName == "message", pg.Code == codeNotNull && pg.TableName == "message":
		return fmt.Errorf("message: %w: another id at its place, or its id elsewhere", mailbox.ErrConflict)
	}
	return err
}

// broken wraps an error with what was being done.
func broken(what, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %s %.80q: %w", what, id, err)
}
