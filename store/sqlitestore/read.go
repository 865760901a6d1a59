package sqlitestore

import (
	"context"
	"database/sql"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

const (
	findThread    = "SELECT id, revision FROM thread WHERE name = ?"
	selectCells   = "SELECT key, value FROM cell WHERE thread = ? AND kind = ? AND key >= ?"
	selectEntries = "SELECT seq, data FROM entry WHERE thread = ? AND log = ? AND seq >= ? ORDER BY seq LIMIT ?"

	// The row value is larger than the one of a place that does not exist, or of the last one of the page before.
	scanPlaces = "SELECT p.key, p.thread, p.kind, p.cell"
	scanValues = `, (SELECT c.value FROM thread t JOIN cell c ON c.thread = t.id
		WHERE t.name = p.thread AND c.kind = p.kind AND c.key = p.cell)`
	scanWhere = " FROM place p WHERE p.name = ? AND p.grp = ? AND (p.key, p.thread, p.kind, p.cell) > (?, ?, ?, ?)"
	scanTo    = " AND p.key < ?"
	scanOrder = " ORDER BY p.key, p.thread, p.kind, p.cell LIMIT ?"

	countPlaces = "SELECT grp, count(*) FROM place WHERE name = ? GROUP BY grp"
)

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, name string, q store.Query) (out store.Snapshot, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(ctx, func() (err error) {
			out, err = c.query(ctx, name, q)
			return err
		})
	})
	if err != nil {
		return store.Snapshot{}, wrap("thread", name, err)
	}
	return out, nil
}

func (c *conn) query(ctx context.Context, name string, q store.Query) (store.Snapshot, error) {
	out := store.Snapshot{Last: make(map[string]uint64, len(q.Entries))}
	var id int64
	found, err := c.row(ctx, []any{&id, &out.Revision}, findThread, blob(name))
	if err != nil {
		return out, err
	}
	for _, span := range q.Entries {
		out.Last[span.Log] = 0
	}
	if !found {
		return out, nil
	}
	for _, r := range q.Cells {
		if err := c.cells(ctx, &out, id, r); err != nil {
			return out, err
		}
	}
	for _, span := range q.Entries {
		if err := c.entries(ctx, &out, id, span); err != nil {
			return out, err
		}
	}
	return out, nil
}

// cells adds the cells of a range to a snapshot.
func (c *conn) cells(ctx context.Context, out *store.Snapshot, id int64, r store.Range) error {
	text, args := selectCells, []any{id, blob(r.Kind), blob(r.From)}
	if r.To != "" {
		text, args = text+" AND key < ?", append(args, blob(r.To))
	}
	text += " ORDER BY key"
	if r.Limit > 0 {
		text, args = text+" LIMIT ?", append(args, r.Limit)
	}
	return c.rows(ctx, func(rows *sql.Rows) error {
		cell := store.Cell{Kind: r.Kind}
		var key sql.RawBytes
		if err := rows.Scan(&key, &cell.Value); err != nil {
			return err
		}
		cell.Key = string(key)
		out.Cells = append(out.Cells, cell)
		return nil
	}, text, args...)
}

// entries adds the entries of a span to a snapshot.
func (c *conn) entries(ctx context.Context, out *store.Snapshot, id int64, span store.Span) error {
	var last uint64
	if _, err := c.row(ctx, []any{&last}, selectLog, id, blob(span.Log)); err != nil {
		return err
	}
	out.Last[span.Log] = last
	if span.Limit <= 0 || span.From > last {
		return nil
	}
	return c.rows(ctx, func(rows *sql.Rows) error {
		e := store.Entry{Log: span.Log}
		if err := rows.Scan(&e.Seq, &e.Data); err != nil {
			return err
		}
		out.Entries = append(out.Entries, e)
		return nil
	}, selectEntries, id, blob(span.Log), sqlcore.Number(span.From), span.Limit)
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, q store.Scan) (out []store.Ref, err error) {
	after := store.Ref{IndexKey: q.From} // no place has an empty thread
	if after.Before(q.After) {
		after = q.After
	}
	args := []any{blob(q.Index), blob(q.Group), blob(after.IndexKey), blob(after.Thread), blob(after.Kind), blob(after.Key)}
	text := scanPlaces
	if q.Values {
		text += scanValues
	}
	text += scanWhere
	if q.To != "" {
		text, args = text+scanTo, append(args, blob(q.To))
	}
	text, args = text+scanOrder, append(args, max(q.Limit, 0))
	err = s.read(ctx, func(c *conn) error {
		out = nil
		return c.rows(ctx, func(rows *sql.Rows) error {
			r, err := scanRef(rows, q.Values)
			out = append(out, r)
			return err
		}, text, args...)
	})
	if err != nil {
		return nil, wrap("index", q.Index, err)
	}
	return out, nil
}

func scanRef(rows *sql.Rows, values bool) (store.Ref, error) {
	var r store.Ref
	var index, thread, kind, key sql.RawBytes
	dest := []any{&index, &thread, &kind, &key}
	if values {
		dest = append(dest, &r.Value)
	}
	err := rows.Scan(dest...)
	r.IndexKey, r.Thread, r.Kind, r.Key = string(index), string(thread), string(kind), string(key)
	return r, err
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, index string) (out map[string]int, err error) {
	err = s.read(ctx, func(c *conn) error {
		out = map[string]int{}
		return c.rows(ctx, func(rows *sql.Rows) error {
			var group sql.RawBytes
			var n int
			if err := rows.Scan(&group, &n); err != nil {
				return err
			}
			out[string(group)] = n
			return nil
		}, countPlaces, blob(index))
	})
	if err != nil {
		return nil, wrap("index", index, err)
	}
	return out, nil
}
