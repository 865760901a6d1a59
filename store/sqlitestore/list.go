package sqlitestore

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// Dispatches implements mailbox.Reader. Without a thread, a page of the queued ones costs as much as
// there are; all others cost what is on the page.
func (s *Store) Dispatches(ctx context.Context, q mailbox.DispatchQuery) (list []mailbox.Dispatch, err error) {
	if len(q.Statuses) == 0 {
		q.Statuses = mailbox.Statuses()
	}
	q.Limit = max(q.Limit, 0) // a negative one is none to SQLite
	err = s.file.Read(ctx, func(c *engine.Conn) (err error) {
		if q.Thread != "" {
			list, err = ofThread(c, q)
		} else {
			list, err = ofAll(c, q)
		}
		return err
	})
	return list, wrap("dispatches of thread", q.Thread, err)
}

func ofThread(c *engine.Conn, q mailbox.DispatchQuery) (list []mailbox.Dispatch, err error) {
	statuses, err := json.Marshal(q.Statuses)
	if err != nil {
		return nil, err
	}
	priority, seq := int64(math.MinInt64), uint64(0)
	if q.After.ID != "" {
		priority, seq = int64(q.After.Priority), q.After.Seq
	}
	err = c.Query(func(r *engine.Row) { list = append(list, readDispatch(r)) }, `SELECT `+dispatchColumns+` FROM dispatch
		WHERE thread = ? AND (priority, seq) > (?, ?) AND status IN (SELECT value FROM json_each(?)) ORDER BY priority, seq LIMIT ?`,
		q.Thread, priority, seq, string(statuses), q.Limit)
	return list, err
}

// ofAll merges a page of each status. Terminal ones come in their order; of those that are
// not, there are few claimed ones.
func ofAll(c *engine.Conn, q mailbox.DispatchQuery) (list []mailbox.Dispatch, err error) {
	const page = ` AND (updated_at, id) > (?, ?) ORDER BY updated_at, id LIMIT ?`
	at, id := int64(math.MinInt64), ""
	if q.After.ID != "" {
		at, id = milli(q.After.UpdatedAt), q.After.ID
	}
	add := func(r *engine.Row) { list = append(list, readDispatch(r)) }
	for _, status := range mailbox.Statuses() {
		if !slices.Contains(q.Statuses, status) || err != nil {
			continue
		}
		switch status {
		case mailbox.Queued:
			err = c.Query(add, `SELECT `+dispatchColumns+` FROM dispatch INDEXED BY dispatch_time WHERE status = 'queued'`+page, at, id, q.Limit)
		case mailbox.Claimed:
			err = c.Query(add, `SELECT `+dispatchColumns+` FROM dispatch INDEXED BY dispatch_claimed WHERE status = 'claimed'`+page, at, id, q.Limit)
		default:
			err = c.Query(add, `SELECT `+dispatchColumns+` FROM dispatch WHERE `+isTerminal+` AND status = ?`+page, string(status), at, id, q.Limit)
		}
	}
	slices.SortFunc(list, func(a, b mailbox.Dispatch) int {
		return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), q.Limit)], err
}

// isTerminal is the condition of the index over what is terminal, word for word.
const isTerminal = `status <> 'queued' AND status <> 'claimed'`

// Messages implements mailbox.Reader.
func (s *Store) Messages(ctx context.Context, thread string, from, limit int) (list []mailbox.Message, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		list = nil
		return c.Query(func(r *engine.Row) {
			list = append(list, mailbox.Message{Seq: int(r.Int()), ID: r.Text(), Run: r.Text(), Data: r.Bytes(), At: r.Time()})
		}, "SELECT seq, id, run, data, at FROM message WHERE thread = ? AND seq >= ? ORDER BY seq LIMIT ?", thread, from, max(limit, 0))
	})
	return list, wrap("messages of thread", thread, err)
}

// Threads implements mailbox.Reader.
func (s *Store) Threads(ctx context.Context, q mailbox.ThreadQuery) (heads []mailbox.Head, err error) {
	text, args := `SELECT `+headColumns+` FROM thread WHERE id > ? AND (seq + epoch > 0 OR fence = 0)`, []any{q.After}
	if q.Tenant != "" {
		text, args = text+` AND tenant = ?`, append(args, q.Tenant)
	}
	if q.Wait != "" {
		text, args = text+` AND open_wait <> '' AND open_wait = ?`, append(args, q.Wait)
	}
	if q.Queued {
		text += ` AND queued > 0`
	}
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		heads = nil
		return c.Query(func(r *engine.Row) { heads = append(heads, readHead(r)) }, text+` ORDER BY id LIMIT ?`, append(args, max(q.Limit, 0))...)
	})
	return heads, wrap("threads after", q.After, err)
}

// Count implements mailbox.Reader.
func (s *Store) Count(ctx context.Context) (counts mailbox.Counts, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) (err error) {
		counts.Status, err = readTally(c)
		return err
	})
	return counts, wrap("counts of", "all", err)
}

// Claims implements mailbox.Reader.
func (s *Store) Claims(ctx context.Context) (claims map[string]int, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		claims = map[string]int{}
		return c.Query(func(r *engine.Row) { claims[r.Text()] = int(r.Int()) },
			`SELECT t.tenant, count(*) FROM dispatch AS d INDEXED BY dispatch_claimed JOIN thread AS t ON t.id = d.thread
			WHERE d.status = 'claimed' GROUP BY t.tenant`)
	})
	return claims, wrap("claims of", "all", err)
}
