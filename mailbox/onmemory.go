package mailbox

import (
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of a memory: threads, bytes of a thread, and bytes of a value. Larger values are read when they are needed.
const (
	memoryThreads = 4096
	memoryBytes   = 64 << 10
	memoryValue   = 16 << 10
)

// memory has what this process wrote and read last, of the latest threads. It may be old: an update that relies on it names the revision,
// so the store refuses it then.
type memory struct {
	mu      sync.Mutex
	threads map[string]*memorized
	// order has the threads by when they were used last, oldest first, and some that are gone.
	order []string
}

// memorized is what is known of a thread at a revision.
type memorized struct {
	revision uint64
	cells    btree.Map[string, store.Cell] // by kind and key
	// absent are cells of which is known that they are not there, whole the kinds of which all are known; all means every kind.
	absent map[cellID]bool
	whole  map[string]bool
	all    bool
	bytes  int
}

func newMemory() *memory { return &memory{threads: map[string]*memorized{}} }

func newMemorized(revision uint64) *memorized {
	return &memorized{revision: revision, absent: map[cellID]bool{}, whole: map[string]bool{}}
}

func (id cellID) sorted() string { return id.kind + "\x00" + id.key }

// revision returns the revision of which something is known.
func (m *memory) revision(thread string) (uint64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	if t == nil {
		return 0, false
	}
	return t.revision, true
}

// cells answers a range at a revision, if all of it is known.
func (m *memory) cells(thread string, revision uint64, q store.Range) ([]store.Cell, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	if t == nil || t.revision != revision || q.Limit > 0 {
		return nil, false
	}
	one := q.To == q.From+"\x00"
	known := t.all || t.whole[q.Kind] || one && t.absent[cellID{q.Kind, q.From}]
	out := t.selected(q)
	if !known && (!one || len(out) == 0) {
		return nil, false
	}
	if slices.ContainsFunc(out, func(c store.Cell) bool { return c.Value == nil }) {
		return nil, false
	}
	for i := range out {
		out[i].Value = slices.Clone(out[i].Value)
	}
	return out, true
}

func (t *memorized) selected(q store.Range) (out []store.Cell) {
	t.cells.Ascend(cellID{q.Kind, q.From}.sorted(), func(_ string, c store.Cell) bool {
		if c.Kind != q.Kind || !q.Contains(c.Key) {
			return false
		}
		out = append(out, c)
		return true
	})
	return out
}

// learn takes what was read at a revision.
func (m *memory) learn(thread string, revision uint64, ranges []store.Range, cells []store.Cell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	if t != nil && t.revision > revision {
		return
	}
	if t == nil || t.revision < revision {
		t = newMemorized(revision)
		t.all = revision == 0
	}
	for _, c := range cells {
		t.set(c)
	}
	for _, q := range ranges {
		switch {
		case q.From == "" && q.To == "":
			t.whole[q.Kind] = true
		case q.To == q.From+"\x00" && len(t.selected(q)) == 0:
			t.absent[cellID{q.Kind, q.From}] = true
		}
	}
	m.keep(thread, t)
}

// wrote takes a batch that made a revision.
func (m *memory) wrote(b *store.Batch, revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[b.Thread]
	if t != nil && t.revision > revision {
		return
	}
	if t == nil || t.revision != b.Base || b.Drop {
		t = newMemorized(revision)
		t.all = b.Drop || b.Base == 0
	}
	t.revision = revision
	for _, q := range b.Delete {
		for _, c := range t.selected(q) {
			t.drop(cellID{c.Kind, c.Key})
		}
		if q.To == q.From+"\x00" {
			t.absent[cellID{q.Kind, q.From}] = true
		}
	}
	for _, c := range b.Put {
		t.set(c)
	}
	if b.Drop && len(b.Put)+len(b.Append) == 0 {
		delete(m.threads, b.Thread)
		return
	}
	m.keep(b.Thread, t)
}

// set takes a cell. A large value is left out: it is nil.
func (t *memorized) set(c store.Cell) {
	id := cellID{c.Kind, c.Key}
	t.drop(id)
	delete(t.absent, id)
	c.Index = nil
	if len(c.Value) > memoryValue {
		c.Value = nil
	} else {
		c.Value = append([]byte{}, c.Value...)
	}
	t.bytes += len(c.Kind) + len(c.Key) + len(c.Value) + 64
	t.cells.Set(id.sorted(), c)
}

func (t *memorized) drop(id cellID) {
	if c, ok := t.cells.Delete(id.sorted()); ok {
		t.bytes -= len(c.Kind) + len(c.Key) + len(c.Value) + 64
	}
}

// keep remembers a thread, unless it is large, and forgets the oldest. The caller holds the lock.
func (m *memory) keep(thread string, t *memorized) {
	if t.bytes > memoryBytes || len(t.absent) > 1000 {
		delete(m.threads, thread)
		return
	}
	if m.threads[thread] == nil {
		m.order = append(m.order, thread)
	}
	m.threads[thread] = t
	for len(m.threads) > memoryThreads || len(m.order) > 2*memoryThreads {
		delete(m.threads, m.order[0])
		m.order = m.order[1:]
	}
}

// forget drops what is known of a thread.
func (m *memory) forget(thread string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.threads, thread)
}
