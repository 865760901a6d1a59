package sqlitestore

import (
	"context"
	"database/sql"
	"time"

	"github.com/mortise-dev/mortise/store/internal/wait"
)

// pollEvery is how often the file is polled for what other processes wrote, while there is a watch.
const pollEvery = 10 * time.Millisecond

// Watch implements store.Store. Batches of other processes are noticed by polling. The first watch may receive at once.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	select {
	case <-s.closed:
		return nil, wrap("topic", topic, ErrClosed)
	default:
	}
	c, err := s.hub.Watch(ctx, topic)
	return c, wrap("topic", topic, err)
}

// poll delivers what other processes wrote while there are watches, until ctx is done. Errors are left to the next attempt: a watch may miss something.
func (s *Store) poll(ctx context.Context) {
	var c *conn
	version := int64(-1)
	for {
		if !s.hub.Watched() {
			select {
			case <-s.hub.Added:
				version = -1
				continue
			case <-ctx.Done():
			}
		}
		if ctx.Err() == nil && c == nil {
			c, _ = s.reader(ctx)
		}
		if ctx.Err() == nil && c != nil {
			_ = s.receive(ctx, c, &version)
		}
		if wait.For(ctx, pollEvery) != nil {
			break
		}
	}
	if c != nil {
		_ = c.close() // it only read
	}
}

// receive delivers the notifications of other processes if the file has changed since the last call.
func (s *Store) receive(ctx context.Context, c *conn, version *int64) error {
	var now int64
	if _, err := c.row(ctx, []any{&now}, "PRAGMA data_version"); err != nil || now == *version {
		return err
	}
	topics := []string{wait.StreamTopic("")}
	err := c.rows(ctx, func(rows *sql.Rows) error {
		var id, origin int64
		var topic sql.RawBytes
		if err := rows.Scan(&id, &origin, &topic); err != nil {
			return err
		}
		s.seen = id
		if origin != s.origin {
			topics = append(topics, string(topic))
		}
		return nil
	}, "SELECT id, origin, topic FROM notice WHERE id > ? ORDER BY id", s.seen)
	s.hub.Notify(topics...)
	if err == nil {
		*version = now
	}
	return err
}
