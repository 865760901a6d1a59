package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// A thread that somebody holds a lock on keeps what it has until the next time: a transition may be
// about to use it. The second statement sees what the first one locked as it is now.
const (
	oldest = `SELECT c.id FROM unnest($1::text[]) s CROSS JOIN LATERAL (
		SELECT id, updated_at FROM @.dispatch WHERE status = s AND updated_at < $2 ORDER BY updated_at, id LIMIT $3
	) c ORDER BY c.updated_at, c.id LIMIT $3`
	holdThreads = `SELECT id FROM @.thread WHERE id = ANY(ARRAY(
		SELECT d.thread FROM (` + oldest + `) o CROSS JOIN LATERAL (SELECT thread FROM @.dispatch WHERE id = o.id LIMIT 1) d
	)) FOR UPDATE SKIP LOCKED`
	dropOldest = `WITH gone AS (
		DELETE FROM @.dispatch WHERE id = ANY(ARRAY(` + oldest + `)) AND thread = ANY($4) RETURNING id
	), events AS (DELETE FROM @.event WHERE dispatch IN (SELECT id FROM gone)
	), last AS (DELETE FROM @.event_last WHERE dispatch IN (SELECT id FROM gone)
	) SELECT count(*) FROM gone`
)

// Purge implements mailbox.Store. Several processes may purge at once.
func (s *Store) Purge(ctx context.Context, q mailbox.PurgeQuery) (n int, err error) {
	words := []string{}
	for _, status := range q.Statuses {
		if status.Terminal() {
			words = append(words, string(status))
		}
	}
	args := []any{words, q.Before.UnixMilli(), max(q.Limit, 0)}
	err = s.try(ctx, func(c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, s.sql(holdThreads), args...)
			if err != nil {
				return err
			}
			threads, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || len(threads) == 0 {
				return err
			}
			return tx.QueryRow(ctx, s.sql(dropOldest), append(args, threads)...).Scan(&n)
		})
	})
	return n, broken("purge of schema", s.cfg.Schema, err)
}
