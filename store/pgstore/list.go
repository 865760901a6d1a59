package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// list runs a query and reads its rows.
func list[T any](ctx context.Context, s *Store, scan func(pgx.Row) (T, error), sql string, args ...any) (out []T, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		out = nil
		rows, err := c.Query(ctx, s.sql(sql), args...)
		if err != nil {
			return err
		}
		return collect(rows, &out, scan)
	})
	return out, err
}

// Each status has its own stretch of the index; the stretches are merged.
const (
	listThread = `SELECT d.* FROM unnest($1::text[]) s CROSS JOIN LATERAL (
		SELECT ` + dispatchColumns + `, ''::bytea FROM @.dispatch WHERE thread = $2 AND status = s AND ($3::bigint = 0 OR (priority, seq) > ($4::smallint, $5::bigint))
		ORDER BY priority, seq LIMIT $6) d ORDER BY priority, seq LIMIT $6`
	listAll = `SELECT d.* FROM unnest($1::text[]) s CROSS JOIN LATERAL (
		SELECT ` + dispatchColumns + `, ''::bytea FROM @.dispatch WHERE status = s AND (updated_at, id) > ($2::bigint, $3::text)
		ORDER BY updated_at, id LIMIT $4) d ORDER BY updated_at, id LIMIT $4`
)

// Dispatches implements mailbox.Reader.
func (s *Store) Dispatches(ctx context.Context, q mailbox.DispatchQuery) ([]mailbox.Dispatch, error) {
	statuses := q.Statuses
	if len(statuses) == 0 {
		statuses = mailbox.Statuses()
	}
	words := make([]string, 0, len(statuses))
	for _, status := range statuses {
		words = append(words, string(status))
	}
	limit := max(q.Limit, 0)
	if q.Thread != "" {
		paged := int64(len(q.After.ID))
		out, err := list(ctx, s, scanDispatch, listThread, words, name(q.Thread), paged, int16(q.After.Priority), int64(q.After.Seq), limit) //nolint:gosec // a counter
		return out, broken("dispatches of thread", q.Thread, err)
	}
	// The empty id, and with it the zero time, come before all others.
	out, err := list(ctx, s, scanDispatch, listAll, words, q.After.UpdatedAt.UnixMilli(), name(q.After.ID), limit)
	return out, broken("dispatches of schema", s.cfg.Schema, err)
}

// Messages implements mailbox.Reader.
func (s *Store) Messages(ctx context.Context, thread string, from, limit int) ([]mailbox.Message, error) {
	const sql = `SELECT seq, id, run, data, at FROM @.message WHERE thread = $1 AND seq >= $2 ORDER BY seq LIMIT $3`
	out, err := list(ctx, s, func(row pgx.Row) (m mailbox.Message, err error) {
		err = row.Scan(&m.Seq, textTo{&m.ID}, textTo{&m.Run}, &m.Data, millisTo{&m.At})
		return m, err
	}, sql, name(thread), from, max(limit, 0))
	return out, broken("messages of thread", thread, err)
}

// Threads implements mailbox.Reader.
func (s *Store) Threads(ctx context.Context, q mailbox.ThreadQuery) ([]mailbox.Head, error) {
	sql := `SELECT ` + headColumns + ` FROM @.thread WHERE id > $1 AND (seq + epoch > 0 OR fence = 0) AND ($2 = '' OR tenant = $2) AND ($3 OR queued > 0)`
	args := []any{name(q.After), name(q.Tenant), !q.Queued, max(q.Limit, 0)}
	if q.Wait != "" {
		sql += ` AND open_wait <> '' AND open_wait = $5`
		args = append(args, text(q.Wait))
	}
	out, err := list(ctx, s, scanHead, sql+` ORDER BY id LIMIT $4`, args...)
	return out, broken("threads of schema", s.cfg.Schema, err)
}

// Find implements mailbox.Store.
func (s *Store) Find(ctx context.Context, kind mailbox.Kind, id string) (thread string, found bool, err error) {
	sql := `SELECT thread FROM @.dispatch WHERE id = $1`
	if kind == mailbox.KindRun {
		sql = `SELECT thread FROM @.run WHERE id = $1`
	}
	err = s.read(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, s.sql(sql), name(id)).Scan(textTo{&thread}) })
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	return thread, err == nil, broken(string(kind), id, err)
}

// Count implements mailbox.Reader. It reads an index from end to end.
func (s *Store) Count(ctx context.Context) (mailbox.Counts, error) {
	out := mailbox.Counts{Status: map[mailbox.Status]int{}}
	err := s.count(ctx, `SELECT status, count(*) FROM @.dispatch GROUP BY status`, func(k string, n int) { out.Status[mailbox.Status(k)] = n })
	return out, broken("counts of schema", s.cfg.Schema, err)
}

// Claims implements mailbox.Reader. It reads the index over claims; the tenant is looked up for each, so that no plan can read all threads.
func (s *Store) Claims(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	err := s.count(ctx, `SELECT (SELECT tenant FROM @.thread t WHERE t.id = d.thread), count(*) FROM @.dispatch d WHERE d.status = 'claimed' GROUP BY 1`,
		func(k string, n int) { out[k] = n })
	return out, broken("claims of schema", s.cfg.Schema, err)
}

func (s *Store) count(ctx context.Context, sql string, put func(string, int)) error {
	return s.read(ctx, func(c *pgx.Conn) error {
		b := &pgx.Batch{}
		s.queue(b, sql).Query(counts(put))
		return c.SendBatch(ctx, b).Close()
	})
}

func counts(put func(string, int)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var key string
		var n int
		_, err := pgx.ForEachRow(rows, []any{textTo{&key}, &n}, func() error {
			put(key, n)
			return nil
		})
		return err
	}
}
