package outboxstore

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

//go:embed schema/*.sql
var scripts embed.FS

// Store is an outbox.Store in PostgreSQL.
type Store struct{ tables *tables.Tables }

var _ outbox.Store = (*Store)(nil)

// New brings the tables of the outbox in the store's schema to the current version. One Outbox at a time uses a schema.
func New(ctx context.Context, s *pgstore.Store) (*Store, error) {
	if err := s.Tables().Migrate(ctx, "outbox_migration", scripts); err != nil {
		return nil, fmt.Errorf("outboxstore: %w", err)
	}
	return &Store{tables: s.Tables()}, nil
}

// Append implements outbox.Store.
func (s *Store) Append(ctx context.Context, c outbox.Change) (seq uint64, err error) {
	err = s.tables.Write(ctx, func(ctx context.Context, tx tables.Tx) (err error) {
		seq, err = add(ctx, tx, c)
		return err
	})
	if err != nil {
		seq = 0
	}
	return seq, wrap(c.Thread, err)
}

func add(ctx context.Context, tx tables.Tx, c outbox.Change) (uint64, error) {
	if c.Key != "" {
		n, err := tx.Exec(ctx, `INSERT INTO @.outbox_key VALUES ($1, $2) ON CONFLICT DO NOTHING`, []byte(c.Thread), []byte(c.Key))
		if err != nil || n == 0 {
			return 0, err
		}
	}
	if c.Task != "" {
		const put = `INSERT INTO @.outbox_record VALUES ($1, $2, $3) ON CONFLICT (thread, task) DO UPDATE SET record = excluded.record`
		if _, err := tx.Exec(ctx, put, []byte(c.Thread), []byte(c.Task), whole(c.Record)); err != nil {
			return 0, err
		}
	}
	if c.Data == nil {
		return 0, nil
	}
	if err := tx.Lock(ctx, "outbox"); err != nil { // a number that is seen has none before it that comes later
		return 0, err
	}
	var seq int64
	const insert = `INSERT INTO @.outbox_entry VALUES (nextval($1::text::regclass), $2, $3, $4) RETURNING seq`
	_, err := tx.One(ctx, insert, []any{tx.Name("outbox_seq"), []byte(c.Thread), whole(c.Data), millis(c.At)}, &seq)
	return uint64(seq), err //nolint:gosec // it counts from 1
}

// whole is never NULL.
func whole(data []byte) []byte { return append([]byte{}, data...) }

func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// Pending implements outbox.Store.
func (s *Store) Pending(ctx context.Context, thread string, after uint64, limit int) (list []outbox.Entry, err error) {
	err = s.tables.Read(ctx, func(ctx context.Context, tx tables.Tx) error {
		list = nil
		return tx.Each(ctx, func(scan func(...any) error) error {
			var seq int64
			var at *int64
			e := outbox.Entry{}
			if err := scan(&seq, &e.Data, &at); err != nil {
				return err
			}
			e.Seq = uint64(seq) //nolint:gosec // it counts from 1
			if at != nil {
				e.At = time.UnixMilli(*at).UTC()
			}
			list = append(list, e)
			return nil
		}, `SELECT seq, data, at FROM @.outbox_entry WHERE thread = $1 AND seq > $2 ORDER BY seq LIMIT $3`, []byte(thread), bounded(after), max(limit, 0))
	})
	return list, wrap(thread, err)
}

// bounded is a number as the tables have it. There are none that are greater.
func bounded(seq uint64) int64 { return int64(min(seq, 1<<63-1)) } //nolint:gosec // bounded

// Remove implements outbox.Store.
func (s *Store) Remove(ctx context.Context, thread string, seqs ...uint64) error {
	list := make([]int64, len(seqs))
	for i, seq := range seqs {
		list[i] = bounded(seq)
	}
	return wrap(thread, s.tables.Write(ctx, func(ctx context.Context, tx tables.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM @.outbox_entry WHERE thread = $1 AND seq = ANY ($2)`, []byte(thread), list)
		return err
	}))
}

// Forget implements outbox.Store.
func (s *Store) Forget(ctx context.Context, thread string, tasks ...string) error {
	list := make([][]byte, len(tasks))
	for i, task := range tasks {
		list[i] = []byte(task)
	}
	return wrap(thread, s.tables.Write(ctx, func(ctx context.Context, tx tables.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM @.outbox_record WHERE thread = $1 AND task = ANY ($2)`, []byte(thread), list); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM @.outbox_key WHERE thread = $1 AND key = ANY ($2)`, []byte(thread), list)
		return err
	}))
}

// Threads implements outbox.Store.
func (s *Store) Threads(ctx context.Context) (names []string, err error) {
	err = s.tables.Read(ctx, func(ctx context.Context, tx tables.Tx) error {
		names = nil
		return tx.Each(ctx, func(scan func(...any) error) error {
			var thread []byte
			err := scan(&thread)
			names = append(names, string(thread))
			return err
		}, `SELECT thread FROM @.outbox_entry UNION SELECT thread FROM @.outbox_record ORDER BY thread`)
	})
	return names, wrap("", err)
}

// Records implements outbox.Store.
func (s *Store) Records(ctx context.Context, thread string) (records map[string][]byte, err error) {
	err = s.tables.Read(ctx, func(ctx context.Context, tx tables.Tx) error {
		records = map[string][]byte{}
		return tx.Each(ctx, func(scan func(...any) error) error {
			var task, data []byte
			err := scan(&task, &data)
			records[string(task)] = data
			return err
		}, `SELECT task, record FROM @.outbox_record WHERE thread = $1`, []byte(thread))
	})
	return records, wrap(thread, err)
}

func wrap(thread string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outboxstore: thread %.80q: %w", thread, err)
}
