package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// conn is a connection with the statements that it has prepared. One goroutine uses it at a time. Statements run to their end even when
// their context is done: they are short, and SQLite may roll back a whole transaction when a statement is interrupted.
type conn struct {
	sql   *sql.Conn
	stmts map[string]statement
}

// statement is one that stays prepared until its connection is closed.
type statement struct{ *sql.Stmt }

func connect(ctx context.Context, db *sql.DB, pragmas ...string) (*conn, error) {
	raw, err := db.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	c := &conn{sql: raw, stmts: map[string]statement{}}
	for _, p := range pragmas {
		if err := c.script(ctx, "PRAGMA "+p); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *conn) close() error {
	errs := make([]error, 0, len(c.stmts)+1)
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.sql.Close())...)
}

// script runs statements that are not run often.
func (c *conn) script(ctx context.Context, text string) error {
	_, err := c.sql.ExecContext(context.WithoutCancel(ctx), text)
	return err
}

// prepare returns a statement, which stays prepared: the text is a constant.
func (c *conn) prepare(ctx context.Context, text string) (statement, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	s, err := c.sql.PrepareContext(ctx, text)
	if err != nil {
		return statement{}, err
	}
	c.stmts[text] = statement{s}
	return c.stmts[text], nil
}

// exec runs a statement that returns no rows.
func (c *conn) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	ctx = context.WithoutCancel(ctx)
	s, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// row reads at most one row, and reports whether there is one.
func (c *conn) row(ctx context.Context, dest []any, text string, args ...any) (bool, error) {
	ctx = context.WithoutCancel(ctx)
	s, err := c.prepare(ctx, text)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// rows calls each for each row. It stops between two rows when ctx is done.
func (c *conn) rows(ctx context.Context, each func(*sql.Rows) error, text string, args ...any) (err error) {
	whole := context.WithoutCancel(ctx)
	s, err := c.prepare(whole, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(whole, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := each(rows); err != nil {
			return fmt.Errorf("row: %w", err)
		}
	}
	return rows.Err()
}

// snapshot calls do in a transaction that only reads.
func (c *conn) snapshot(ctx context.Context, do func() error) error {
	if _, err := c.exec(ctx, "BEGIN"); err != nil {
		return err
	}
	err := do()
	_, end := c.exec(ctx, "ROLLBACK")
	return errors.Join(err, end)
}
