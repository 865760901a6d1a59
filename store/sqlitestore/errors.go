package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// ErrClosed reports a call of a store that was closed.
var ErrClosed = sqlcore.ErrClosed

// Pauses between two attempts to lock the file while another process has it. The attempts are not left to SQLite's busy_timeout, which
// sleeps for up to 100 ms and does not know the context.
const (
	firstPause = 100 * time.Microsecond
	lastPause  = time.Millisecond
)

// wrap adds the object of a call to an error.
func wrap(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlitestore: %s %.80q: %w", what, name, err)
}

// code returns the extended result code of an error of SQLite, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// locked reports whether another process or connection has the lock.
func locked(err error) bool {
	primary := code(err) & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// taken reports whether a statement was refused because a row with a unique key exists.
func taken(err error) bool {
	return code(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}

// refused reports whether an error concerns one batch only: SQLite works, and the transaction can continue without the batch.
func refused(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists)
}

// retry calls run until the file is not locked, or ctx is done.
func retry(ctx context.Context, run func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := run()
		if !locked(err) {
			return err
		}
		if over := wait.For(ctx, pause/2+rand.N(pause)); over != nil { //nolint:gosec // not a secret
			return fmt.Errorf("%w, while another process has the lock: %w", over, err)
		}
	}
}
