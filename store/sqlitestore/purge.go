package sqlitestore

import (
	"context"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// Purge implements mailbox.Store.
func (s *Store) Purge(ctx context.Context, q mailbox.PurgeQuery) (n int, err error) {
	err = s.file.Write(ctx, func(c *engine.Conn) error {
		s.cache.clear()
		var sum tally
		for _, status := range q.Statuses {
			if !status.Terminal() {
				continue
			}
			ids, err := oldest(c, status, q, q.Limit-n)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := forget(c, id); err != nil {
					return err
				}
			}
			sum.add(status, -len(ids))
			n += len(ids)
		}
		return sum.write(c)
	})
	if err != nil {
		n = 0
	}
	return n, wrap("purge of", "all", err)
}

func oldest(c *engine.Conn, status mailbox.Status, q mailbox.PurgeQuery, limit int) (ids []string, err error) {
	err = c.Query(func(r *engine.Row) { ids = append(ids, r.Text()) },
		`SELECT id FROM dispatch WHERE `+isTerminal+` AND status = ? AND updated_at < ? ORDER BY updated_at, id LIMIT ?`, string(status), milli(q.Before), max(limit, 0))
	return ids, err
}

func forget(c *engine.Conn, id string) error {
	if _, err := c.Exec("DELETE FROM request WHERE dispatch = ?", id); err != nil {
		return err
	}
	if _, err := c.Exec("DELETE FROM event WHERE dispatch = ?", id); err != nil {
		return err
	}
	_, err := c.Exec("DELETE FROM dispatch WHERE id = ?", id)
	return err
}
