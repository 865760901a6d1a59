package sqlitestore

import (
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mortise-dev/mortise/internal/sqlitefile"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

// ErrClosed reports a call of a store that was closed.
var ErrClosed = sqlcore.ErrClosed

// wrap adds the object of a call to an error.
func wrap(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlitestore: %s %.80q: %w", what, name, err)
}

// taken reports whether a statement was refused because a row with a unique key exists.
func taken(err error) bool {
	return sqlitefile.Code(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}

// refused reports whether an error concerns one batch only: SQLite works, and the transaction can continue without the batch.
func refused(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists)
}
