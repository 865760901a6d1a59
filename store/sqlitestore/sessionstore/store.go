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
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// CallTime bounds how long a call waits for other processes.
const CallTime = 5 * time.Second

//go:embed schema/*.sql
var scripts embed.FS

var (
	errClosed = errors.New("the store is closed")
	errHeld   = fmt.Errorf("another process holds the file for more than %s; end that one, or wait for it", CallTime)
)

// Store is a session.Store in a file.
type Store struct {
	file *engine.File
	// base is what the time of a call hangs on: calls have no context of their own.
	base   context.Context //nolint:containedctx // see there
	closed atomic.Bool
}

var _ session.Store = (*Store)(nil)

// New brings the tables of sessions in the store's file to the current version.
func New(ctx context.Context, s *sqlitestore.Store) (*Store, error) {
	schema, err := engine.SchemaOf("session", scripts)
	if err == nil {
		err = s.File().Migrate(ctx, schema)
	}
	if err != nil {
		return nil, fmt.Errorf("sessionstore: %w", err)
	}
	return &Store{file: s.File(), base: context.WithoutCancel(ctx)}, nil
}

// Close implements session.Store. The file stays open.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// call runs one call, in its time.
func (s *Store) call(run func(context.Context, func(*engine.Conn) error) error, do func(*engine.Conn) error) error {
	if s.closed.Load() {
		return errClosed
	}
	ctx, cancel := context.WithTimeoutCause(s.base, CallTime, errHeld)
	defer cancel()
	return run(ctx, do)
}

// number is that of a thread, 0 if there is none.
func number(c *engine.Conn, thread string) (n int64, err error) {
	err = c.Query(func(r *engine.Row) { n = r.Int() }, "SELECT number FROM session_thread WHERE thread = ?", thread)
	return n, err
}

// numbered is the number of a thread, which it gets if it has none.
func numbered(c *engine.Conn, thread string) (int64, error) {
	n, err := number(c, thread)
	if err != nil || n != 0 {
		return n, err
	}
	return c.Insert("INSERT INTO session_thread (thread) VALUES (?)", thread)
}

func wrap(thread string, err error) error {
	if err == nil || errors.Is(err, compaction.ErrConflict) {
		return err
	}
	return fmt.Errorf("sessionstore: thread %.80q: %w", thread, err)
}
