package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

const (
	// attempts is how often a statement is begun that changed nothing.
	attempts = 8
	// grace is what a call has beyond Config.StatementTimeout, so that the server is the first to give up.
	grace = time.Second
)

// read runs a statement that changes nothing, again if its connection broke.
func (s *Store) read(ctx context.Context, what string, run func(context.Context, *pgx.Conn) error) error {
	return s.run(ctx, what, true, run)
}

// write runs a statement, again if it certainly changed nothing.
func (s *Store) write(ctx context.Context, what string, run func(context.Context, *pgx.Conn) error) error {
	err := s.run(ctx, what, false, run)
	if err != nil && (answered(err) || pgconn.SafeToRetry(err)) {
		return store.NotApplied(err)
	}
	return err
}

func (s *Store) run(ctx context.Context, what string, harmless bool, run func(context.Context, *pgx.Conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	limited, cancel := s.limit(ctx)
	defer cancel()
	if s.tx != nil {
		return s.failed(limited, what, s.inside(limited, run))
	}
	for n := 0; ; n++ {
		broke, err := s.once(limited, run)
		again := transient(err) || broke && harmless
		if err == nil || !again || n+1 == attempts || wait.For(limited, jitter(time.Millisecond<<n)) != nil {
			return s.failed(limited, what, err)
		}
	}
}

func (s *Store) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := s.cfg.StatementTimeout + grace
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded))
}

// once runs with a connection. A connection that broke lets the pool replace all: the server was stopped, most likely.
func (s *Store) once(ctx context.Context, run func(context.Context, *pgx.Conn) error) (broke bool, err error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, store.NotApplied(err)
	}
	defer c.Release()
	err = run(ctx, c.Conn())
	if err == nil || !c.Conn().IsClosed() || ctx.Err() != nil {
		return false, err
	}
	s.pool.Reset()
	return true, err
}

// transient reports whether an error left everything as it was and may not come again.
func transient(err error) bool {
	switch code(err) {
	case "40001", "40P01": // serialization failure, deadlock
		return true
	}
	return err != nil && pgconn.SafeToRetry(err) && !errors.As(err, new(*pgconn.ConnectError))
}

// lockTimeout is the code of a call that did not wait for another transaction.
const lockTimeout = "55P03"

// answered reports whether an error is the server's, and its process lives on: the transaction was rolled back.
func answered(err error) bool {
	c := code(err)
	return errors.Is(err, store.ErrExists) || c != "" && !strings.HasPrefix(c, "57P")
}

func code(err error) string {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// jitter returns about that long.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) } //nolint:gosec // not a secret

// failed returns an error for the caller, in one line.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	pg := (*pgconn.PgError)(nil)
	if errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == "place_sole" {
		return fmt.Errorf("pgstore: %s: unique index key: %w", what, store.ErrExists)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if hint := s.hint(err); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	err = fmt.Errorf("pgstore: %s: %w", what, err)
	if strings.Contains(err.Error(), "\n") {
		return line{err}
	}
	return err
}

// hint returns what an operator can do.
func (s *Store) hint(err error) string {
	switch code(err) {
	case "42501":
		return fmt.Sprintf("grant the role USAGE on schema %s and its sequences, and SELECT, INSERT, UPDATE and DELETE on its tables; "+
			"to create or migrate them, CREATE on the schema, or on the database", s.cfg.Schema)
	case "3F000", "42P01", "42883":
		return fmt.Sprintf("is schema %s still there? Opening the store creates it", s.cfg.Schema)
	case "53300":
		return "raise max_connections of the server, or lower Config.Conns"
	case "26000", "42P05":
		return "is a pooler between? Add default_query_exec_mode=cache_describe to the URL"
	}
	return ""
}

// line is an error whose text has one line.
type line struct{ error }

func (l line) Error() string {
	return strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ").Replace(strings.TrimSpace(l.error.Error()))
}

func (l line) Unwrap() error { return l.error }
