package pgstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// AppendEvents implements store.Events. The batches are added at once, or none.
func (s *Store) AppendEvents(ctx context.Context, list ...store.EventBatch) (refused []string, err error) {
	if len(list) == 0 {
		return nil, context.Cause(ctx)
	}
	args := s.eventArgs(list)
	var positions []int32
	err = s.write(ctx, fmt.Sprintf("append to stream %.80q", list[0].Stream), func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, s.sql.appendEvents, args...).Scan(&positions)
	})
	for _, n := range positions {
		refused = append(refused, list[n-1].Stream)
	}
	return refused, err
}

// eventArgs returns the parameters of the function append_events, in its order.
func (s *Store) eventArgs(list []store.EventBatch) []any {
	var streams columns
	var fences, firsts, lasts, keeps, ats, locks []int64
	var datas [][]byte
	var topics []string
	for i := range list {
		b := &list[i]
		streams.add(b.Stream)
		fences, keeps = append(fences, sqlcore.Number(b.Fence)), append(keeps, sqlcore.Number(b.Keep))
		firsts, lasts = append(firsts, sqlcore.Number(b.First)), append(lasts, sqlcore.Number(b.Last))
		ats, datas = append(ats, b.At.UnixMicro()), append(datas, sqlcore.Bytes(b.Data))
		topics = append(topics, topicDigest(wait.StreamTopic(b.Stream)))
		digest := slot(s.cfg.Schema, b.Stream)[indexDigest:]
		locks = append(locks, int64(binary.BigEndian.Uint64([]byte(digest)))) //nolint:gosec // the bits are meant
	}
	slices.Sort(locks) // two processes lock in the same order
	return []any{streams.at(0), fences, firsts, lasts, keeps, ats, datas, topics, slices.Compact(locks)}
}

// ReadEvents implements store.Events.
func (s *Store) ReadEvents(ctx context.Context, stream string, after uint64, limit int, patience time.Duration) ([]store.EventBatch, error) {
	return s.hub.Events(ctx, topicDigest(wait.StreamTopic(stream)), patience, func() ([]store.EventBatch, error) {
		return s.events(ctx, stream, after, limit)
	})
}

func (s *Store) events(ctx context.Context, stream string, after uint64, limit int) (out []store.EventBatch, err error) {
	err = s.read(ctx, fmt.Sprintf("stream %.80q", stream), func(ctx context.Context, c *pgx.Conn) error {
		out = nil
		rows, err := c.Query(ctx, s.sql.readEvents, []byte(stream), sqlcore.Number(after), int64(max(limit, 0)))
		if err != nil {
			return err
		}
		b := store.EventBatch{Stream: stream}
		var micros int64
		_, err = pgx.ForEachRow(rows, []any{&b.Fence, &b.First, &b.Last, &micros, &b.Data}, func() error {
			b.At = time.UnixMicro(micros).UTC()
			out, b.Data = append(out, b), nil
			return nil
		})
		return err
	})
	return out, err
}

// PurgeEvents implements store.Events.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	return s.write(ctx, "purge events", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, s.sql.purgeEvents, before.UnixMicro())
		return err
	})
}

// DropEvents implements store.Events.
func (s *Store) DropEvents(ctx context.Context, streams ...string) error {
	var list columns
	for _, stream := range streams {
		list.add(stream)
	}
	return s.write(ctx, "drop events", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, s.sql.dropEvents, list.at(0))
		return err
	})
}
