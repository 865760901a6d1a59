package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

const (
	putCell      = "INSERT INTO cell (thread, kind, key, value) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
	deleteCells  = "DELETE FROM cell WHERE thread = ? AND kind = ? AND key >= ?"
	deletePlaces = "DELETE FROM place WHERE thread = ? AND kind = ? AND cell >= ?"

	selectPlaces = "SELECT name, grp, key, sole FROM place WHERE thread = ? AND kind = ? AND cell = ?"
	insertPlace  = "INSERT INTO place (name, grp, key, thread, kind, cell, sole) VALUES (?, ?, ?, ?, ?, ?, ?)"
	deletePlace  = "DELETE FROM place WHERE name = ? AND grp = ? AND key = ? AND thread = ? AND kind = ? AND cell = ?"
)

// applyCells deletes and puts cells. All old places go before the first new one: a unique place may go from one cell to another.
func (t *tx) applyCells(ctx context.Context, th *thread, b *store.Batch) {
	if !th.empty {
		for _, r := range b.Delete {
			t.deleteRange(ctx, th.id, b.Thread, r)
		}
	}
	added := make([][]store.IndexKey, len(b.Put))
	for i := range b.Put {
		c := &b.Put[i]
		if added[i] = c.Index; !th.empty {
			added[i] = t.leavePlaces(ctx, b.Thread, c)
		}
		t.run(ctx, putCell, th.id, blob(c.Kind), blob(c.Key), sqlcore.Bytes(c.Value))
	}
	for i := range b.Put {
		t.takePlaces(ctx, b.Thread, &b.Put[i], added[i])
	}
}

// deleteRange deletes cells and their places.
func (t *tx) deleteRange(ctx context.Context, id int64, name string, r store.Range) {
	places, cells := deletePlaces, deleteCells
	keys := []any{blob(r.Kind), blob(r.From)}
	if r.To != "" {
		places, cells = places+" AND cell < ?", cells+" AND key < ?"
		keys = append(keys, blob(r.To))
	}
	t.run(ctx, places, append([]any{blob(name)}, keys...)...)
	t.run(ctx, cells, append([]any{id}, keys...)...)
}

// leavePlaces deletes the places of a cell that it no longer has, and returns those that are new.
func (t *tx) leavePlaces(ctx context.Context, name string, c *store.Cell) []store.IndexKey {
	var old []store.IndexKey
	t.each(ctx, func(r *sql.Rows) error {
		var index, group, key sql.RawBytes
		var sole bool
		err := r.Scan(&index, &group, &key, &sole)
		old = append(old, store.IndexKey{Name: string(index), Group: string(group), Key: string(key), Unique: sole})
		return err
	}, selectPlaces, blob(name), blob(c.Kind), blob(c.Key))
	for _, k := range old {
		if !slices.Contains(c.Index, k) {
			t.run(ctx, deletePlace, blob(k.Name), blob(k.Group), blob(k.Key), blob(name), blob(c.Kind), blob(c.Key))
		}
	}
	return slices.DeleteFunc(slices.Clone(c.Index), func(k store.IndexKey) bool { return slices.Contains(old, k) })
}

// takePlaces inserts new places of a cell.
func (t *tx) takePlaces(ctx context.Context, name string, c *store.Cell, added []store.IndexKey) {
	for _, k := range added {
		t.run(ctx, insertPlace, blob(k.Name), blob(k.Group), blob(k.Key), blob(name), blob(c.Kind), blob(c.Key), k.Unique)
		if taken(t.err) {
			t.err = fmt.Errorf("cell %.80q of kind %q: index %q: %w", c.Key, c.Kind, k.Name, store.ErrExists)
		}
	}
}
