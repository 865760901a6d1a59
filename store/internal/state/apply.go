package state

import (
	"bytes"
	"slices"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/store"
)

// Removed is what a batch deleted or replaced.
type Removed[E any] struct {
	Cells []store.Cell
	// Entries has the deleted ones of each log.
	Entries map[string][]E
}

// Apply makes the changes of a batch that was checked. The thread gets the revision, and keeps what add returns for each entry.
func (s *State[E]) Apply(b *store.Batch, revision uint64, add func(n int) E) (old Removed[E]) {
	t := s.Thread(b.Thread)
	if b.Drop {
		old = s.Drop(b.Thread)
		t.Logs = map[string]*Log[E]{}
	}
	for _, r := range b.Delete {
		r.Limit = 0
		old.Cells = append(old.Cells, s.remove(t, b.Thread, r)...)
	}
	for i := range b.Put { // all old places first: a unique one may go from one cell to another
		old.Cells = append(old.Cells, s.remove(t, b.Thread, store.One(b.Put[i].Kind, b.Put[i].Key))...)
	}
	for i := range b.Put {
		s.put(t, b.Thread, b.Put[i])
	}
	for _, trim := range b.Trim {
		if list := t.trim(trim); len(list) > 0 {
			if old.Entries == nil {
				old.Entries = map[string][]E{}
			}
			old.Entries[trim.Log] = append(old.Entries[trim.Log], list...)
		}
	}
	for i := range b.Append {
		name := b.Append[i].Log
		if t.Logs[name] == nil {
			t.Logs[name] = &Log[E]{}
		}
		t.Logs[name].Entries = append(t.Logs[name].Entries, add(i))
	}
	t.Revision = revision
	if b.Drop && len(t.cells)+len(t.Logs) == 0 {
		return old
	}
	s.threads[b.Thread] = t
	if b.ID != "" {
		t.Applied = append(t.Applied, Applied{ID: b.ID, Revision: revision})
		t.Applied = slices.Clone(t.Applied[max(len(t.Applied)-store.Remembered, 0):])
	}
	return old
}

// Drop deletes a thread.
func (s *State[E]) Drop(name string) Removed[E] {
	t := s.Thread(name)
	old := Removed[E]{Entries: map[string][]E{}}
	for kind := range t.cells {
		old.Cells = append(old.Cells, s.remove(t, name, store.All(kind))...)
	}
	for log, l := range t.Logs {
		old.Entries[log] = l.Entries
	}
	delete(s.threads, name)
	return old
}

// Restore makes a thread, which must not exist, of what it has.
func (s *State[E]) Restore(name string, t *Thread[E], cells []store.Cell) {
	t.cells = map[string]*btree.Map[string, store.Cell]{}
	s.threads[name] = t
	for _, c := range cells {
		s.put(t, name, c)
	}
}

// trim deletes entries of a log, and returns them.
func (t *Thread[E]) trim(trim store.Trim) []E {
	l := t.Logs[trim.Log]
	if l == nil || trim.Before <= l.After+1 {
		return nil
	}
	n := min(trim.Before-1, l.Last()) - l.After
	old := l.Entries[:n]
	l.After, l.Entries = l.After+n, slices.Clone(l.Entries[n:])
	return old
}

// put adds a cell that does not exist.
func (s *State[E]) put(t *Thread[E], thread string, c store.Cell) {
	c.Value, c.Index = bytes.Clone(c.Value), slices.Clone(c.Index)
	if t.cells[c.Kind] == nil {
		t.cells[c.Kind] = &btree.Map[string, store.Cell]{}
	}
	t.cells[c.Kind].Set(c.Key, c)
	for _, k := range c.Index {
		group := Place{Name: k.Name, Group: k.Group}
		if s.indexes[group] == nil {
			s.indexes[group] = btree.NewBTreeGOptions(store.Ref.Before, btree.Options{NoLocks: true})
		}
		s.indexes[group].Set(store.Ref{IndexKey: k.Key, Thread: thread, Kind: c.Kind, Key: c.Key})
		if k.Unique {
			s.unique[Place{k.Name, k.Group, k.Key}] = cellID{thread, c.Kind, c.Key}
		}
	}
}

// remove deletes the cells of a range and their places in indexes, and returns them.
func (s *State[E]) remove(t *Thread[E], thread string, r store.Range) []store.Cell {
	old := t.selected(r)
	for _, c := range old {
		t.cells[c.Kind].Delete(c.Key)
		for _, k := range c.Index {
			group, p := Place{Name: k.Name, Group: k.Group}, Place{k.Name, k.Group, k.Key}
			s.indexes[group].Delete(store.Ref{IndexKey: k.Key, Thread: thread, Kind: c.Kind, Key: c.Key})
			if s.indexes[group].Len() == 0 {
				delete(s.indexes, group)
			}
			if s.unique[p] == (cellID{thread, c.Kind, c.Key}) {
				delete(s.unique, p)
			}
		}
	}
	if cells := t.cells[r.Kind]; cells != nil && cells.Len() == 0 {
		delete(t.cells, r.Kind)
	}
	return old
}
