package sqlitestore

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

var _ mailbox.EventLog = (*Store)(nil)

// How often to look for events of other processes, at first and when none come.
const (
	eventPoll     = 10 * time.Millisecond
	eventLastPoll = 160 * time.Millisecond
)

// bell rings when this process adds events.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

const (
	lastEvents = `SELECT first, last, fence FROM event WHERE dispatch = ? ORDER BY first DESC LIMIT 1`
	putEvents  = `INSERT INTO event (dispatch, first, last, fence, at, data) VALUES (?, ?, ?, ?, ?, ?)`
	cutEvents  = `DELETE FROM event WHERE dispatch = ? AND first < ? AND last < ?`
	// Batches do not overlap: the one before the first that begins later may have it.
	readEvents = `SELECT first, last, fence, at, data FROM event WHERE dispatch = ? AND last > ?
		AND first >= coalesce((SELECT max(first) FROM event WHERE dispatch = ? AND first <= ?), 0) ORDER BY first LIMIT ?`
)

// AppendEvents implements mailbox.EventLog. It waits for no flush: a crash of the machine may lose the last ones.
func (s *Store) AppendEvents(ctx context.Context, list ...mailbox.EventBatch) (refused []string, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	err = s.file.WriteSoft(ctx, func(c *engine.Conn) error {
		refused = nil // it may run again
		for i := range list {
			no, err := appendEvents(c, &list[i])
			if err != nil {
				return err
			}
			if no {
				refused = append(refused, list[i].Stream)
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("events of dispatch", list[0].Stream, err)
	}
	s.added.ring()
	return refused, nil
}

func appendEvents(c *engine.Conn, b *mailbox.EventBatch) (refused bool, err error) {
	var last mailbox.EventBatch
	err = c.Query(func(r *engine.Row) { last.First, last.Last, last.Fence = r.Uint(), r.Uint(), r.Uint() }, lastEvents, b.Stream)
	if err != nil {
		return false, err
	}
	add, refused := b.Follows(last)
	if !add {
		return refused, nil
	}
	data := b.Data
	if data == nil {
		data = []byte{}
	}
	if _, err := c.Exec(putEvents, b.Stream, b.First, b.Last, b.Fence, milli(b.At), data); err != nil || b.Keep == 0 {
		return false, err
	}
	_, err = c.Exec(cutEvents, b.Stream, b.Keep, b.Keep)
	return false, err
}

// ReadEvents implements mailbox.EventLog. What another process adds is found within some tens of milliseconds while
// events come, and within some hundred when they have ceased.
func (s *Store) ReadEvents(ctx context.Context, dispatch string, after uint64, limit int, wait time.Duration) ([]mailbox.EventBatch, error) {
	until := time.Now().Add(wait)
	for pause := eventPoll; ; pause = min(2*pause, eventLastPoll) {
		rung := s.added.wait()
		list, err := s.eventsAfter(ctx, dispatch, after, limit)
		left := time.Until(until)
		if err != nil || len(list) > 0 || left <= 0 {
			return list, wrap("events of dispatch", dispatch, err)
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-rung:
		case <-timer.C:
		case <-ctx.Done(): // the next look says so
		}
		timer.Stop()
	}
}

func (s *Store) eventsAfter(ctx context.Context, dispatch string, after uint64, limit int) (list []mailbox.EventBatch, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		list = nil
		return c.Query(func(r *engine.Row) {
			list = append(list, mailbox.EventBatch{
				Stream: dispatch, First: r.Uint(), Last: r.Uint(), Fence: r.Uint(), At: r.Time(), Data: r.Bytes(),
			})
		}, readEvents, dispatch, after, dispatch, after, max(limit, 0))
	})
	return list, err
}

// PurgeEvents implements mailbox.EventLog.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	const once = 10_000 // so that nobody waits for long
	for n := int64(once); n == once; {
		err := s.file.Write(ctx, func(c *engine.Conn) (err error) {
			n, err = c.Exec("DELETE FROM event WHERE (dispatch, first) IN (SELECT dispatch, first FROM event WHERE at < ? ORDER BY at LIMIT ?)", milli(before), once)
			return err
		})
		if err != nil {
			return wrap("purge of events before", before.String(), err)
		}
	}
	return nil
}

// DropEvents implements mailbox.EventLog. Dropping a dispatch has done that already.
func (*Store) DropEvents(context.Context, ...string) error { return nil }
