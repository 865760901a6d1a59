package pgstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// A thread that is due at once is written as ready. One that becomes due later is made ready by
// whoever looks first, so that those that are ready have an index by rank and no look has to pass
// those that are not. Threads that somebody holds a lock on are passed over: somebody is at them.
const promote = `UPDATE @.thread SET ready = true WHERE id = ANY(ARRAY(
	SELECT id FROM @.thread WHERE NOT ready AND due_at <= $1 ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED))`

// dueByRank looks at so many threads that are ready, at most, and takes those that nobody has a lock on, as
// they are then. It holds them for a moment, so that two who look at once see different ones: without that they
// go through one list together, and most of their claims come too late.
const dueByRank = `SELECT h.* FROM unnest(ARRAY(
		SELECT id FROM (SELECT id, rank, due_at, tenant FROM @.thread WHERE ready ORDER BY rank, id LIMIT $4) t
		WHERE due_at <= $1 AND tenant <> ALL($2) ORDER BY rank, id LIMIT 4 * $3::bigint
	)) AS c(id) CROSS JOIN LATERAL (
		SELECT ` + headColumns + ` FROM @.thread WHERE id = c.id AND due_at <= $1 AND tenant <> ALL($2) FOR UPDATE SKIP LOCKED
	) h LIMIT $3`

// dueByTenant looks at each tenant that has threads which are ready.
const dueByTenant = `WITH RECURSIVE tenants AS (
		SELECT min(tenant) AS tenant FROM @.thread WHERE ready
		UNION ALL SELECT (SELECT min(tenant) FROM @.thread WHERE ready AND tenant > t.tenant) FROM tenants t WHERE t.tenant IS NOT NULL
	) SELECT h.* FROM tenants t CROSS JOIN LATERAL (
		SELECT ` + headColumns + ` FROM @.thread WHERE ready AND tenant = t.tenant AND due_at <= $1 ORDER BY rank, id LIMIT $3
	) h WHERE t.tenant <> ALL($2) ORDER BY rank, id LIMIT $3`

const nextDue = `SELECT least((SELECT min(due_at) FROM @.thread WHERE NOT ready AND due_at > $1), (SELECT min(due_at) FROM @.thread WHERE ready AND due_at > $1))`

// Bounds of one look.
const (
	promoted = 1000
	passed   = 1000
)

// Due implements mailbox.Store. When more than a thousand threads become due between two looks, those
// that are due longest come first.
func (s *Store) Due(ctx context.Context, q mailbox.DueQuery) (due []mailbox.Head, next time.Time, err error) {
	by, limit, skip := q.By.UnixMilli(), max(q.Limit, 0), names(q.Skip)
	err = s.read(ctx, func(c *pgx.Conn) error {
		due, next = nil, time.Time{}
		b := &pgx.Batch{}
		b.Queue(`BEGIN`)
		b.Queue(`SET LOCAL synchronous_commit = off`) // nothing of it has to last
		s.queue(b, promote, by, max(promoted, limit))
		s.queue(b, dueByRank, by, skip, limit, limit+passed).Query(heads(&due))
		s.queue(b, nextDue, by).QueryRow(func(row pgx.Row) error { return row.Scan(millisTo{&next}) })
		b.Queue(`COMMIT`)
		if err := c.SendBatch(ctx, b).Close(); err != nil || len(due) == limit || len(skip) == 0 {
			return err
		}
		due = nil
		rows, err := c.Query(ctx, s.sql(dueByTenant), by, skip, limit)
		if err != nil {
			return err
		}
		return heads(&due)(rows)
	})
	slices.SortFunc(due, func(a, b mailbox.Head) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Thread, b.Thread)) // some may have changed at the last moment
	})
	return due, next, broken("due threads of schema", s.cfg.Schema, err)
}

// heads reads rows of headColumns.
func heads(out *[]mailbox.Head) func(pgx.Rows) error {
	return func(rows pgx.Rows) error { return collect(rows, out, scanHead) }
}

// collect reads rows.
func collect[T any](rows pgx.Rows, out *[]T, scan func(pgx.Row) (T, error)) error {
	defer rows.Close()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return err
		}
		*out = append(*out, v)
	}
	return rows.Err()
}
