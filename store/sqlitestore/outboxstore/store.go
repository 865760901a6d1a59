package outboxstore

import (
	"context"
	"embed"
	"fmt"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

//go:embed schema/*.sql
var scripts embed.FS

// Store is an outbox.Store in a file.
type Store struct{ file *engine.File }

var _ outbox.Store = (*Store)(nil)

// New brings the tables of the outbox in the store's file to the current version. One Outbox at
// a time uses a file.
func New(ctx context.Context, s *sqlitestore.Store) (*Store, error) {
	schema, err := engine.SchemaOf("outbox", scripts)
	if err == nil {
		err = s.File().Migrate(ctx, schema)
	}
	if err != nil {
		return nil, fmt.Errorf("outboxstore: %w", err)
	}
	return &Store{file: s.File()}, nil
}

// Append implements outbox.Store.
func (s *Store) Append(ctx context.Context, c outbox.Change) (seq uint64, err error) {
	err = s.file.Write(ctx, func(conn *engine.Conn) (err error) {
		seq, err = add(conn, c)
		return err
	})
	if err != nil {
		seq = 0
	}
	return seq, wrap(c.Thread, err)
}

func add(conn *engine.Conn, c outbox.Change) (uint64, error) {
	if c.Key != "" {
		n, err := conn.Exec("INSERT INTO outbox_key VALUES (?, ?) ON CONFLICT DO NOTHING", c.Thread, c.Key)
		if err != nil || n == 0 {
			return 0, err
		}
	}
	if c.Task != "" {
		_, err := conn.Exec("INSERT INTO outbox_record VALUES (?, ?, ?) ON CONFLICT (thread, task) DO UPDATE SET record = excluded.record",
			c.Thread, c.Task, c.Record)
		if err != nil {
			return 0, err
		}
	}
	if c.Data == nil {
		return 0, nil
	}
	id, err := conn.Insert("INSERT INTO outbox_entry (thread, data, at) VALUES (?, ?, ?)", c.Thread, c.Data, c.At)
	return uint64(id), err //nolint:gosec // it counts from 1
}

// Pending implements outbox.Store.
func (s *Store) Pending(ctx context.Context, thread string, after uint64, limit int) (list []outbox.Entry, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		list = nil
		return c.Query(func(r *engine.Row) {
			e := outbox.Entry{Seq: r.Uint(), Data: r.Bytes(), At: r.Time()}
			if e.Data == nil {
				e.Data = []byte{}
			}
			list = append(list, e)
		}, "SELECT seq, data, at FROM outbox_entry WHERE thread = ? AND seq > ? ORDER BY seq LIMIT ?", thread, after, max(limit, 0))
	})
	return list, wrap(thread, err)
}

// Remove implements outbox.Store.
func (s *Store) Remove(ctx context.Context, thread string, seqs ...uint64) error {
	return wrap(thread, s.file.Write(ctx, func(c *engine.Conn) error {
		for _, seq := range seqs {
			if _, err := c.Exec("DELETE FROM outbox_entry WHERE seq = ? AND thread = ?", seq, thread); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Forget implements outbox.Store.
func (s *Store) Forget(ctx context.Context, thread string, tasks ...string) error {
	return wrap(thread, s.file.Write(ctx, func(c *engine.Conn) error {
		for _, task := range tasks {
			if _, err := c.Exec("DELETE FROM outbox_record WHERE thread = ? AND task = ?", thread, task); err != nil {
				return err
			}
			if _, err := c.Exec("DELETE FROM outbox_key WHERE thread = ? AND key = ?", thread, task); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Threads implements outbox.Store.
func (s *Store) Threads(ctx context.Context) (names []string, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		names = nil
		return c.Query(func(r *engine.Row) { names = append(names, r.Text()) },
			"SELECT thread FROM outbox_entry UNION SELECT thread FROM outbox_record ORDER BY thread")
	})
	return names, wrap("", err)
}

// Records implements outbox.Store.
func (s *Store) Records(ctx context.Context, thread string) (records map[string][]byte, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		records = map[string][]byte{}
		return c.Query(func(r *engine.Row) { records[r.Text()] = r.Bytes() }, "SELECT task, record FROM outbox_record WHERE thread = ?", thread)
	})
	return records, wrap(thread, err)
}

func wrap(thread string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outboxstore: thread %.80q: %w", thread, err)
}
