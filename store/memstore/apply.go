package memstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/store"
)

// Apply implements store.Store. It checks the whole batch before it changes anything.
func (s *Store) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[b.Thread]
	if t == nil {
		t = newThread()
	}
	if b.ID != "" {
		if n := slices.IndexFunc(t.applied, func(a applied) bool { return a.id == b.ID }); n >= 0 {
			return t.applied[n].revision, nil
		}
	}
	if b.Base != store.AnyRevision && b.Base != t.revision {
		return 0, fmt.Errorf("memstore: thread %.80q: %w: it has %d, the batch was made for %d", b.Thread, store.ErrConflict, t.revision, b.Base)
	}
	if err := t.checkEntries(&b); err != nil {
		return 0, err
	}
	if err := s.checkUnique(&b); err != nil {
		return 0, err
	}
	s.change(t, &b)
	for _, topic := range b.Notify {
		s.notify(topic)
	}
	return t.revision, nil
}

// checkEntries refuses entries whose numbers are not those that they would get.
func (t *thread) checkEntries(b *store.Batch) error {
	last := map[string]uint64{}
	for name, l := range t.logs {
		if !b.Drop {
			last[name] = l.last()
		}
	}
	for i := range b.Append {
		e := &b.Append[i]
		last[e.Log]++
		if e.Seq != 0 && e.Seq != last[e.Log] {
			return fmt.Errorf("memstore: thread %.80q: log %.80q: %w: the next entry is %d, not %d", b.Thread, e.Log, store.ErrConflict, last[e.Log], e.Seq)
		}
	}
	return nil
}

// checkUnique refuses unique places that other cells will still have when the batch is applied.
func (s *Store) checkUnique(b *store.Batch) error {
	taken := map[place]cellID{}
	for i := range b.Put {
		c := &b.Put[i]
		id := cellID{thread: b.Thread, kind: c.Kind, key: c.Key}
		for _, k := range c.Index {
			if !k.Unique {
				continue
			}
			p := place{name: k.Name, group: k.Group, key: k.Key}
			holder, held := s.unique[p]
			if held && rewrites(b, holder) {
				held = false // the batch deletes that cell, or puts it with other index keys
			}
			if _, twice := taken[p]; twice || held {
				return fmt.Errorf("memstore: thread %.80q: cell %.80q of kind %q: index %q: %w", b.Thread, c.Key, c.Kind, k.Name, store.ErrExists)
			}
			taken[p] = id
		}
	}
	return nil
}

// rewrites reports whether a batch deletes or puts a cell.
func rewrites(b *store.Batch, id cellID) bool {
	if id.thread != b.Thread {
		return false
	}
	return b.Drop ||
		slices.ContainsFunc(b.Delete, func(r store.Range) bool { return r.Kind == id.kind && r.Contains(id.key) }) ||
		slices.ContainsFunc(b.Put, func(c store.Cell) bool { return c.Kind == id.kind && c.Key == id.key })
}

// change applies a batch that was checked.
func (s *Store) change(t *thread, b *store.Batch) {
	if b.Drop {
		for kind := range t.cells {
			s.remove(t, b.Thread, store.All(kind))
		}
		t.logs = map[string]*log{}
	}
	for _, r := range b.Delete {
		r.Limit = 0
		s.remove(t, b.Thread, r)
	}
	for i := range b.Put { // all old places first: a unique one may go from one cell to another
		s.remove(t, b.Thread, store.One(b.Put[i].Kind, b.Put[i].Key))
	}
	for i := range b.Put {
		s.put(t, b.Thread, b.Put[i])
	}
	for _, trim := range b.Trim {
		if l := t.logs[trim.Log]; l != nil && trim.Before > l.after+1 {
			n := min(trim.Before-1, l.last()) - l.after
			l.after, l.entries = l.after+n, slices.Clone(l.entries[n:])
		}
	}
	for i := range b.Append {
		e := &b.Append[i]
		if t.logs[e.Log] == nil {
			t.logs[e.Log] = &log{}
		}
		t.logs[e.Log].entries = append(t.logs[e.Log].entries, bytes.Clone(e.Data))
	}
	s.revision++
	if len(t.cells) == 0 && len(t.logs) == 0 && b.Drop {
		delete(s.threads, b.Thread)
		t.revision = s.revision
		return
	}
	s.threads[b.Thread], t.revision = t, s.revision
	if b.ID != "" {
		t.applied = append(t.applied, applied{id: b.ID, revision: t.revision})
		t.applied = t.applied[max(len(t.applied)-store.Remembered, 0):]
	}
}

// put adds a cell that is not there.
func (s *Store) put(t *thread, id string, c store.Cell) {
	c.Value, c.Index = bytes.Clone(c.Value), slices.Clone(c.Index)
	if t.cells[c.Kind] == nil {
		t.cells[c.Kind] = &btree.Map[string, store.Cell]{}
	}
	t.cells[c.Kind].Set(c.Key, c)
	for _, k := range c.Index {
		group := place{name: k.Name, group: k.Group}
		if s.indexes[group] == nil {
			s.indexes[group] = btree.NewBTreeGOptions(store.Ref.Before, btree.Options{NoLocks: true})
		}
		s.indexes[group].Set(store.Ref{IndexKey: k.Key, Thread: id, Kind: c.Kind, Key: c.Key})
		if k.Unique {
			s.unique[place{name: k.Name, group: k.Group, key: k.Key}] = cellID{thread: id, kind: c.Kind, key: c.Key}
		}
	}
}

// remove deletes the cells of a range and their places in indexes.
func (s *Store) remove(t *thread, id string, r store.Range) {
	for _, c := range t.selected(r) {
		t.cells[c.Kind].Delete(c.Key)
		for _, k := range c.Index {
			group := place{name: k.Name, group: k.Group}
			s.indexes[group].Delete(store.Ref{IndexKey: k.Key, Thread: id, Kind: c.Kind, Key: c.Key})
			if s.indexes[group].Len() == 0 {
				delete(s.indexes, group)
			}
			if k.Unique {
				delete(s.unique, place{name: k.Name, group: k.Group, key: k.Key})
			}
		}
	}
	if cells := t.cells[r.Kind]; cells != nil && cells.Len() == 0 {
		delete(t.cells, r.Kind)
	}
}
