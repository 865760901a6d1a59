package sqlitestore

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

const (
	lastEvent    = "SELECT first, last, fence FROM event WHERE stream = ? ORDER BY last DESC LIMIT 1"
	insertEvent  = "INSERT INTO event (stream, first, last, fence, at, data) VALUES (?, ?, ?, ?, ?, ?)"
	trimEvents   = "DELETE FROM event WHERE stream = ? AND last < ?"
	selectEvents = "SELECT first, last, fence, at, data FROM event WHERE stream = ? AND last > ? ORDER BY last LIMIT ?"
	purgeEvents  = "DELETE FROM event WHERE (stream, last) IN (SELECT stream, last FROM event WHERE at < ? ORDER BY at LIMIT ?)"

	// purgeBatch is how many batches of events are deleted in one transaction, so that other writers do not wait for long.
	purgeBatch = 1000
)

// AppendEvents implements store.Events. It does not wait for a flush.
func (s *Store) AppendEvents(ctx context.Context, list ...store.EventBatch) (refused []string, err error) {
	if len(list) == 0 {
		return nil, context.Cause(ctx)
	}
	n := 0
	for i := range list {
		n += len(list[i].Data)
	}
	err = s.writer.write(ctx, n, change{soft: true, do: func(ctx context.Context, t *tx) error {
		refused, t.events = nil, true
		for i := range list {
			no, err := t.appendEvents(ctx, &list[i])
			if err != nil {
				return err
			}
			if no {
				refused = append(refused, list[i].Stream)
			}
		}
		return nil
	}})
	if err != nil {
		return nil, wrap("stream", list[0].Stream, err)
	}
	return refused, nil
}

func (t *tx) appendEvents(ctx context.Context, b *store.EventBatch) (refused bool, err error) {
	var last store.EventBatch
	if _, err := t.row(ctx, []any{&last.First, &last.Last, &last.Fence}, lastEvent, blob(b.Stream)); err != nil {
		return false, err
	}
	add, refused := b.Follows(last)
	if !add {
		return refused, nil
	}
	if b.Keep > 0 {
		t.run(ctx, trimEvents, blob(b.Stream), sqlcore.Number(b.Keep))
	}
	t.run(ctx, insertEvent, blob(b.Stream), sqlcore.Number(b.First), sqlcore.Number(b.Last), sqlcore.Number(b.Fence), b.At.UnixMicro(), sqlcore.Bytes(b.Data))
	return false, t.err
}

// ReadEvents implements store.Events. All streams share a topic: polling does not show which one another process added to.
func (s *Store) ReadEvents(ctx context.Context, stream string, after uint64, limit int, patience time.Duration) ([]store.EventBatch, error) {
	list, err := s.hub.Events(ctx, wait.StreamTopic(""), patience, func() ([]store.EventBatch, error) {
		return s.eventsAfter(ctx, stream, after, limit)
	})
	return list, wrap("stream", stream, err)
}

func (s *Store) eventsAfter(ctx context.Context, stream string, after uint64, limit int) (list []store.EventBatch, err error) {
	err = s.read(ctx, func(c *conn) error {
		list = nil
		return c.rows(ctx, func(rows *sql.Rows) error {
			b := store.EventBatch{Stream: stream}
			var at int64
			if err := rows.Scan(&b.First, &b.Last, &b.Fence, &at, &b.Data); err != nil {
				return err
			}
			b.At = time.UnixMicro(at).UTC()
			list = append(list, b)
			return nil
		}, selectEvents, blob(stream), sqlcore.Number(after), max(limit, 0))
	})
	return list, err
}

// PurgeEvents implements store.Events.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	for n := int64(purgeBatch); n == purgeBatch; {
		err := s.writer.write(ctx, 0, change{soft: true, do: func(ctx context.Context, t *tx) error {
			n = t.count(ctx, purgeEvents, before.UnixMicro(), purgeBatch)
			return t.err
		}})
		if err != nil {
			return wrap("events before", before.String(), err)
		}
	}
	return nil
}

// DropEvents implements store.Events.
func (s *Store) DropEvents(ctx context.Context, streams ...string) error {
	err := s.writer.write(ctx, 0, change{do: func(ctx context.Context, t *tx) error {
		for _, stream := range streams {
			t.run(ctx, "DELETE FROM event WHERE stream = ?", blob(stream))
		}
		return t.err
	}})
	return wrap("streams", strings.Join(streams, " "), err)
}
