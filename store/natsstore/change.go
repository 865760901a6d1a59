package natsstore

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/store"
)

// maxKept is the size of the largest entry that is kept in memory.
const maxKept = 4 << 10

// leftover is what an operation made unnecessary in the stream.
type leftover struct {
	places []place
	// chunks has the logs whose chunks before a sequence have no entries.
	chunks map[string]uint64
}

// change makes the changes of an operation, as memstore does.
func (s *state) change(t *thread, op *operation, seq uint64) (old leftover) {
	old.chunks = map[string]uint64{}
	before := map[place]bool{}
	remove := func(r store.Range) {
		for _, p := range s.remove(t, r) {
			before[p] = true
		}
	}
	if op.Drop {
		for kind := range t.cells {
			remove(store.All(kind))
		}
		s.forgetLogs(t, seq, old)
	}
	for _, r := range op.Delete {
		r.Limit = 0
		remove(r)
	}
	for i := range op.Put { // all old places first: a unique one may go from one cell to another
		remove(store.One(op.Put[i].Kind, op.Put[i].Key))
	}
	for i := range op.Put {
		s.put(t, op.Put[i])
	}
	for _, trim := range op.Trim {
		if s.forget(t, trim.Log, trim.Before) {
			old.chunks[trim.Log] = t.logs[trim.Log].floor(seq)
		}
	}
	for i := range op.Append {
		s.append(t, op.Append[i], seq, i)
	}
	for p := range before {
		if _, held := s.unique[p]; !held {
			old.places = append(old.places, p)
		}
	}
	t.revision = seq
	t.exists = !op.Drop || len(t.cells)+len(t.logs) > 0
	if t.exists && op.ID != "" {
		t.applied = append(t.applied, applied{ID: op.ID, Revision: seq})
		t.applied = slices.Clone(t.applied[max(len(t.applied)-store.Remembered, 0):])
	}
	return old
}

// forgetLogs deletes all logs.
func (s *state) forgetLogs(t *thread, seq uint64, old leftover) {
	for name := range t.logs {
		if s.forget(t, name, t.logs[name].last()+1) {
			old.chunks[name] = seq
		}
	}
	t.logs = map[string]*log{}
}

// put adds a cell that does not exist.
func (s *state) put(t *thread, c store.Cell) {
	if t.cells[c.Kind] == nil {
		t.cells[c.Kind] = &btree.Map[string, store.Cell]{}
	}
	t.cells[c.Kind].Set(c.Key, c)
	t.live += sizeOf(c)
	for _, k := range c.Index {
		group := place{name: k.Name, group: k.Group}
		if s.indexes[group] == nil {
			s.indexes[group] = btree.NewBTreeGOptions(store.Ref.Before, btree.Options{NoLocks: true})
		}
		s.indexes[group].Set(store.Ref{IndexKey: k.Key, Thread: t.name, Kind: c.Kind, Key: c.Key})
		if k.Unique {
			s.unique[place{name: k.Name, group: k.Group, key: k.Key}] = cellID{thread: t.name, kind: c.Kind, key: c.Key}
		}
	}
}

// remove deletes the cells of a range and their places in indexes, and returns the unique ones.
func (s *state) remove(t *thread, r store.Range) (places []place) {
	for _, c := range t.selected(r) {
		t.cells[c.Kind].Delete(c.Key)
		t.live -= sizeOf(c)
		for _, k := range c.Index {
			group := place{name: k.Name, group: k.Group}
			if refs := s.indexes[group]; refs != nil {
				refs.Delete(store.Ref{IndexKey: k.Key, Thread: t.name, Kind: c.Kind, Key: c.Key})
				if refs.Len() == 0 {
					delete(s.indexes, group)
				}
			}
			p := place{name: k.Name, group: k.Group, key: k.Key}
			if k.Unique && s.unique[p] == (cellID{thread: t.name, kind: c.Kind, key: c.Key}) {
				delete(s.unique, p)
				places = append(places, p)
			}
		}
	}
	if cells := t.cells[r.Kind]; cells != nil && cells.Len() == 0 {
		delete(t.cells, r.Kind)
	}
	return places
}

// append adds an entry that an operation has, and keeps its data if there is room.
func (s *state) append(t *thread, e store.Entry, seq uint64, index int) {
	l := t.logs[e.Log]
	if l == nil {
		l = &log{}
		t.logs[e.Log] = l
	}
	added := entry{seq: seq, index: index, size: cellOverhead + len(e.Data)}
	if n := len(e.Data); n <= maxKept && n <= s.memory {
		added.data = e.Data
		if added.data == nil {
			added.data = []byte{}
		}
		s.memory -= n
	}
	l.entries = append(l.entries, added)
	t.live += added.size
}

// floor is the sequence before which a log has no chunks, as of a message.
func (l *log) floor(seq uint64) uint64 {
	if c := l.first(); c != nil {
		return c.seq
	}
	return seq
}

// forget deletes the entries of a log before a number. It reports whether a chunk has none left.
func (s *state) forget(t *thread, name string, before uint64) bool {
	l := t.logs[name]
	if l == nil || before <= l.after+1 {
		return false
	}
	n, first := min(before-1, l.last())-l.after, l.first()
	for i := range l.entries[:n] {
		s.memory += len(l.entries[i].data)
		t.live -= l.entries[i].size
	}
	l.after, l.entries = l.after+n, slices.Clone(l.entries[n:])
	return first != nil && l.first() != first
}

// clear deletes all that is known of a thread.
func (s *state) clear(t *thread) {
	for kind := range t.cells {
		s.remove(t, store.All(kind))
	}
	for name, l := range t.logs {
		s.forget(t, name, l.last()+1)
	}
	*t = *newThread(t.name)
}
