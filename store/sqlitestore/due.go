package sqlitestore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// Bounds of a look for what is due: how many late threads are sorted here before they are made
// ready, how many are made so at once, and how far the ready ones are read, at least, before the search
// goes by tenant.
const (
	mostLate   = 256
	lateAtOnce = 10_000
	readAhead  = 256
)

const (
	selectLate  = `SELECT id, rank, tenant, due_at FROM thread WHERE ready = 0 AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ?`
	selectSoon  = `SELECT due_at FROM thread WHERE ready = 0 AND due_at IS NOT NULL AND due_at > ? ORDER BY due_at LIMIT 1`
	selectReady = `SELECT id, rank, tenant, due_at FROM thread WHERE ready = 1 ORDER BY rank, id LIMIT ?`
	selectTurn  = `SELECT id, rank, tenant, due_at FROM thread WHERE ready = 1 AND tenant = ? AND due_at <= ? ORDER BY rank, id LIMIT ?`
	// The tenants with ready threads, each found by one step in the index.
	selectTenants = `WITH RECURSIVE t (tenant) AS (
		SELECT min(tenant) FROM thread WHERE ready = 1
		UNION ALL
		SELECT (SELECT min(tenant) FROM thread WHERE ready = 1 AND tenant > t.tenant) FROM t WHERE t.tenant IS NOT NULL
	) SELECT tenant FROM t WHERE tenant IS NOT NULL`
	makeReady = `UPDATE thread SET ready = 1 WHERE id IN (
		SELECT id FROM thread WHERE ready = 0 AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ?)`
)

// turn is a thread that is due.
type turn struct {
	thread string
	rank   int64
	tenant string
	at     time.Time
}

func readTurn(r *engine.Row) turn {
	return turn{thread: r.Text(), rank: r.Int(), tenant: r.Text(), at: r.Time()}
}

// Due implements mailbox.Store. Many threads that have become late, such as after a crash, are made
// ready once, and from then on found by rank like the others.
func (s *Store) Due(ctx context.Context, q mailbox.DueQuery) (heads []mailbox.Head, next time.Time, err error) {
	for {
		late := 0
		err = s.file.Read(ctx, func(c *engine.Conn) (err error) {
			heads, next, late, err = due(c, q)
			return err
		})
		if err != nil || late < mostLate {
			return heads, next, wrap("what is due for", "all", err)
		}
		err = s.file.Write(ctx, func(c *engine.Conn) error {
			_, err := c.Exec(makeReady, milli(q.By), lateAtOnce)
			return err
		})
		if err != nil {
			return nil, time.Time{}, wrap("what is due for", "all", err)
		}
	}
}

// due looks, and says how many were late; with as many as mostLate it says nothing else.
func due(c *engine.Conn, q mailbox.DueQuery) (heads []mailbox.Head, next time.Time, late int, err error) {
	var turns []turn
	collect := func(r *engine.Row) { turns = append(turns, readTurn(r)) }
	if err := c.Query(collect, selectLate, milli(q.By), mostLate); err != nil || len(turns) == mostLate {
		return nil, time.Time{}, len(turns), err
	}
	late = len(turns)
	if err := c.Query(func(r *engine.Row) { next = r.Time() }, selectSoon, milli(q.By)); err != nil {
		return nil, time.Time{}, late, err
	}
	most := max(4*q.Limit, readAhead)
	if err := c.Query(collect, selectReady, most); err != nil {
		return nil, time.Time{}, late, err
	}
	whole := len(turns)-late < most
	for _, t := range turns {
		if t.at.After(q.By) && (next.IsZero() || t.at.Before(next)) {
			next = t.at
		}
	}
	turns = eligible(turns, q)
	if len(turns) < q.Limit && !whole {
		if turns, err = byTenant(c, q, turns); err != nil {
			return nil, time.Time{}, late, err
		}
	}
	heads, err = headsOf(c, turns)
	return heads, next, late, err
}

// eligible are the turns that a query asks for, in order.
func eligible(turns []turn, q mailbox.DueQuery) []turn {
	turns = slices.DeleteFunc(turns, func(t turn) bool { return t.at.After(q.By) || slices.Contains(q.Skip, t.tenant) })
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.thread, b.thread))
	})
	turns = slices.CompactFunc(turns, func(a, b turn) bool { return a.thread == b.thread })
	return turns[:min(len(turns), max(q.Limit, 0))]
}

// byTenant looks among the threads of each tenant that is not skipped.
func byTenant(c *engine.Conn, q mailbox.DueQuery, turns []turn) ([]turn, error) {
	var tenants []string
	if err := c.Query(func(r *engine.Row) { tenants = append(tenants, r.Text()) }, selectTenants); err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		if slices.Contains(q.Skip, tenant) {
			continue
		}
		err := c.Query(func(r *engine.Row) { turns = append(turns, readTurn(r)) }, selectTurn, tenant, milli(q.By), q.Limit)
		if err != nil {
			return nil, err
		}
	}
	return eligible(turns, q), nil
}

func headsOf(c *engine.Conn, turns []turn) ([]mailbox.Head, error) {
	var heads []mailbox.Head
	for _, t := range turns {
		if err := c.Query(func(r *engine.Row) { heads = append(heads, readHead(r)) }, selectHead, t.thread); err != nil {
			return nil, err
		}
	}
	return heads, nil
}
