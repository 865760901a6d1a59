package pgstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

var _ mailbox.EventLog = (*Store)(nil)

// eventPoll is how often to look for events whatever the wire says: it may be broken.
const eventPoll = time.Second

// watchers wait for events of dispatches.
type watchers struct {
	mu   sync.Mutex
	open map[string]*watcher
}

// watcher is closed when there may be events.
type watcher struct {
	rung    chan struct{}
	readers int
}

// watch returns what is closed when there may be events of a dispatch.
func (w *watchers) watch(dispatch string) (rung <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.open[dispatch]
	if one == nil {
		one = &watcher{rung: make(chan struct{})}
		w.open[dispatch] = one
	}
	one.readers++
	return one.rung, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		one.readers--
		if one.readers == 0 && w.open[dispatch] == one {
			delete(w.open, dispatch)
		}
	}
}

func (w *watchers) ring(dispatches []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range dispatches {
		if one := w.open[id]; one != nil {
			close(one.rung)
			delete(w.open, id)
		}
	}
}

// appendEvents adds a batch if it follows, as mailbox.EventBatch.Follows has it, and says whether it did, or was
// there already. The row of the last batch is locked until the end of the transaction.
const appendEvents = `WITH follows AS (
		INSERT INTO @.event_last AS l (dispatch, first, last, fence, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (dispatch) DO UPDATE SET first = excluded.first, last = excluded.last, fence = excluded.fence, at = excluded.at
			WHERE l.fence <= excluded.fence AND l.last < excluded.first
		RETURNING 1
	), added AS (
		INSERT INTO @.event (dispatch, first, last, fence, at, data) SELECT $1, $2, $3, $4, $5, $6::bytea FROM follows
	), cut AS (
		DELETE FROM @.event WHERE dispatch = $1 AND first < $7 AND last < $7 AND EXISTS (SELECT FROM follows)
	)
	SELECT EXISTS (SELECT FROM follows) OR EXISTS (SELECT FROM @.event_last WHERE dispatch = $1 AND first = $2 AND fence = $4)`

// AppendEvents implements mailbox.EventLog.
func (s *Store) AppendEvents(ctx context.Context, list ...mailbox.EventBatch) (refused []string, err error) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b mailbox.EventBatch) int { return cmp.Compare(a.Stream, b.Stream) }) // whoever locks, in one order
	notices, err := toldOfEvents(list)
	if err != nil {
		return nil, broken("events of dispatch", list[0].Stream, err)
	}
	err = s.try(ctx, func(c *pgx.Conn) error {
		refused = nil
		b := &pgx.Batch{}
		b.Queue(`BEGIN`)
		for i := range list {
			s.queue(b, appendEvents, eventArgs(&list[i])...).QueryRow(func(row pgx.Row) error {
				var there bool
				err := row.Scan(&there)
				if err == nil && !there {
					refused = append(refused, list[i].Stream)
				}
				return err
			})
		}
		b.Queue(`SELECT pg_notify($1, p) FROM unnest($2::text[]) p`, s.wire.channel, notices)
		b.Queue(`COMMIT`)
		return c.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, broken("events of dispatch", list[0].Stream, err)
	}
	return refused, nil
}

func eventArgs(e *mailbox.EventBatch) []any {
	return []any{
		name(e.Stream), int64(e.First), int64(e.Last), int64(e.Fence), e.At.UnixMilli(), append([]byte{}, e.Data...), int64(e.Keep), //nolint:gosec // counters
	}
}

// toldOfEvents are notices of less than 8000 bytes: a byte of a name has 6 in JSON at most.
func toldOfEvents(list []mailbox.EventBatch) (out []string, err error) {
	const most = 7900 / 6
	for len(list) > 0 {
		var n notice
		size, i := 0, 0
		for ; i < len(list) && (i == 0 || size+len(list[i].Stream)+2 <= most); i++ {
			size += len(list[i].Stream) + 2
			n.Events = append(n.Events, list[i].Stream)
		}
		text, err := json.Marshal(n)
		if err != nil {
			return nil, err
		}
		out, list = append(out, string(text)), list[i:]
	}
	return out, nil
}

// ReadEvents implements mailbox.EventLog.
func (s *Store) ReadEvents(ctx context.Context, dispatch string, after uint64, limit int, wait time.Duration) ([]mailbox.EventBatch, error) {
	until := time.Now().Add(wait)
	for {
		list, over, err := s.awaitEvents(ctx, dispatch, after, limit, until)
		if over || err != nil || len(list) > 0 {
			return list, broken("events of dispatch", dispatch, err)
		}
	}
}

// awaitEvents looks once, and waits for a while if there are none. It is over when the time is.
func (s *Store) awaitEvents(ctx context.Context, dispatch string, after uint64, limit int, until time.Time) (list []mailbox.EventBatch, over bool, err error) {
	rung, stop := s.wire.watchers.watch(dispatch)
	defer stop()
	if list, err = s.eventsAfter(ctx, dispatch, after, limit); err != nil || len(list) > 0 {
		return list, false, err
	}
	left := time.Until(until)
	if left <= 0 {
		return nil, true, nil
	}
	timer := time.NewTimer(min(left, eventPoll))
	defer timer.Stop()
	select {
	case <-rung:
	case <-timer.C:
	case <-ctx.Done(): // the next look says so
	}
	return nil, false, nil
}

// readEvents reads from the batch on that may have the number: batches do not overlap.
const readEvents = `SELECT first, last, fence, at, data FROM @.event WHERE dispatch = $1 AND last > $2
	AND first >= coalesce((SELECT max(first) FROM @.event WHERE dispatch = $1 AND first <= $2), 0) ORDER BY first LIMIT $3`

func (s *Store) eventsAfter(ctx context.Context, dispatch string, after uint64, limit int) (list []mailbox.EventBatch, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		list = nil
		rows, err := c.Query(ctx, s.sql(readEvents), name(dispatch), int64(after), max(limit, 0)) //nolint:gosec // a counter
		if err != nil {
			return err
		}
		b := mailbox.EventBatch{Stream: dispatch}
		_, err = pgx.ForEachRow(rows, []any{&b.First, &b.Last, &b.Fence, millisTo{&b.At}, &b.Data}, func() error {
			list = append(list, b)
			b.Data = nil
			return nil
		})
		return err
	})
	return list, err
}

// PurgeEvents implements mailbox.EventLog.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	err := s.try(ctx, func(c *pgx.Conn) error {
		b := &pgx.Batch{}
		s.queue(b, `DELETE FROM @.event WHERE at < $1`, before.UnixMilli())
		s.queue(b, `DELETE FROM @.event_last WHERE at < $1`, before.UnixMilli())
		return c.SendBatch(ctx, b).Close()
	})
	return broken("purge of events of schema", s.cfg.Schema, err)
}

// DropEvents implements mailbox.EventLog. Dropping a dispatch has done that already.
func (*Store) DropEvents(context.Context, ...string) error { return nil }
