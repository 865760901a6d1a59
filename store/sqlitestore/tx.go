package sqlitestore

import (
	"context"
	"database/sql"
)

// tx is the transaction of a group. Its methods do nothing after the first error of a job, which is in err.
type tx struct {
	*conn
	err error
	// wrote is set when the job may have changed something.
	wrote bool

	// revision is that of the last batch, topics and events are what to notify after the COMMIT.
	revision int64
	topics   []string
	events   bool
}

// exec runs a statement that changes something. Its result is nil after an error.
func (t *tx) exec(ctx context.Context, text string, args ...any) (done sql.Result) {
	if t.err == nil {
		t.wrote = true
		done, t.err = t.conn.exec(ctx, text, args...)
	}
	return done
}

func (t *tx) run(ctx context.Context, text string, args ...any) { _ = t.exec(ctx, text, args...) }

// insert returns the number of the new row.
func (t *tx) insert(ctx context.Context, text string, args ...any) (id int64) {
	done := t.exec(ctx, text, args...)
	if t.err == nil {
		id, t.err = done.LastInsertId()
	}
	return id
}

// count returns how many rows a statement changed.
func (t *tx) count(ctx context.Context, text string, args ...any) (n int64) {
	done := t.exec(ctx, text, args...)
	if t.err == nil {
		n, t.err = done.RowsAffected()
	}
	return n
}

// each calls a function for each row.
func (t *tx) each(ctx context.Context, do func(*sql.Rows) error, text string, args ...any) {
	if t.err == nil {
		t.err = t.rows(ctx, do, text, args...)
	}
}
