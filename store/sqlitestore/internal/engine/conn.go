package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"modernc.org/sqlite"
)

// Conn is a connection in a transaction.
type Conn struct {
	driver driver.Conn
	// ctx never ends: statements are short, and a half of one helps nobody.
	ctx   context.Context //nolint:containedctx // the driver asks for one
	stmts map[string]statement
	args  []driver.NamedValue
	cells []driver.Value
	// wrote says that something was written since it was last cleared.
	wrote bool
	// version is what SQLite calls data_version: it changes with commits of others.
	version int64
	// epoch changes when what was read or written before may not hold any more.
	epoch uint64
}

// Epoch is a number that changes when something of what was read or written on this connection in
// earlier calls may not hold any more, because others have written or something was undone.
func (c *Conn) Epoch() uint64 { return c.epoch }

// statement is what a prepared statement of the driver can do.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func connect(ctx context.Context, path string, pragmas ...string) (*Conn, error) {
	raw, err := (&sqlite.Driver{}).Open(source(path))
	if err != nil {
		return nil, err
	}
	c := &Conn{driver: raw, ctx: context.WithoutCancel(ctx), stmts: map[string]statement{}}
	for _, p := range pragmas {
		if err := c.Script("PRAGMA " + p); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *Conn) close() error {
	errs := make([]error, 0, len(c.stmts)+1)
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.driver.Close())...)
}

// Script runs statements that have no arguments and are not run often.
func (c *Conn) Script(text string) error {
	run, ok := c.driver.(driver.ExecerContext)
	if !ok {
		return fmt.Errorf("the driver %T runs no scripts", c.driver)
	}
	c.wrote = true
	_, err := run.ExecContext(c.ctx, text, nil)
	return err
}

// Exec runs a statement and says how many rows it changed. Arguments are int, int64, uint8, uint64,
// bool, string, []byte, nil, and time.Time, which is kept as milliseconds, or NULL if zero. The
// statement stays prepared: its text is a constant.
func (c *Conn) Exec(text string, args ...any) (int64, error) {
	done, err := c.run(text, args)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func (c *Conn) run(text string, args []any) (driver.Result, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	c.wrote = true
	return s.ExecContext(c.ctx, c.bind(args))
}

// Insert runs a statement that inserts one row, and returns the row's number. See [Conn.Exec].
func (c *Conn) Insert(text string, args ...any) (int64, error) {
	done, err := c.run(text, args)
	if err != nil {
		return 0, err
	}
	return done.LastInsertId()
}

// Query runs a statement and calls each for its rows. See [Conn.Exec]. Each does not use the
// connection.
func (c *Conn) Query(each func(r *Row), text string, args ...any) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(c.ctx, c.bind(args))
	if err != nil {
		return err
	}
	width := len(rows.Columns())
	if cap(c.cells) < width {
		c.cells = make([]driver.Value, width)
	}
	row := &Row{cells: c.cells[:width]}
	for {
		if err := rows.Next(row.cells); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, rows.Close())
		}
		row.at = 0
		each(row)
	}
}

func (c *Conn) prepare(text string) (statement, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	made, err := c.driver.Prepare(text)
	if err != nil {
		return nil, err
	}
	s, ok := made.(statement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's statement is a %T", made), made.Close())
	}
	c.stmts[text] = s
	return s, nil
}

func (c *Conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, arg := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: cell(arg)})
	}
	return c.args
}

// cell is an argument as the driver takes it. What it does not know the driver refuses.
func cell(arg any) driver.Value {
	switch v := arg.(type) {
	case int:
		return int64(v)
	case uint8:
		return int64(v)
	case uint64:
		return int64(v) //nolint:gosec // comes back the same way
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return v.UnixMilli()
	default:
		return arg
	}
}

// foreign says whether others have written since it was last asked. In a transaction.
func (c *Conn) foreign() (bool, error) {
	old := c.version
	err := c.Query(func(r *Row) { c.version = r.Int() }, "PRAGMA data_version")
	return c.version != old, err
}

// Row is one of a result. Its cells are read from left to right, and are the caller's own.
type Row struct {
	cells []driver.Value
	at    int
}

func (r *Row) next() driver.Value {
	r.at++
	return r.cells[r.at-1]
}

// Text reads a string; NULL is empty.
func (r *Row) Text() string {
	s, _ := r.next().(string)
	return s
}

// Int reads a number; NULL is 0.
func (r *Row) Int() int64 {
	n, _ := r.next().(int64)
	return n
}

// Uint reads a number that was a uint64.
func (r *Row) Uint() uint64 { return uint64(r.Int()) } //nolint:gosec // see cell

// Bool reads a truth value; NULL is false.
func (r *Row) Bool() bool { return r.Int() != 0 }

// Bytes reads a BLOB; NULL and nothing are nil.
func (r *Row) Bytes() []byte {
	b, _ := r.next().([]byte)
	if len(b) == 0 {
		return nil
	}
	return b
}

// Time reads a time; NULL is the zero time.
func (r *Row) Time() time.Time {
	n, ok := r.next().(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}
