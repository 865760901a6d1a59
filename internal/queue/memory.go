package queue

import (
	"bytes"
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of a memory: threads, bytes of a thread, and bytes of a value. Larger values are read when they are needed.
const (
	memoryThreads = 4096
	memoryBytes   = 64 << 10
	memoryValue   = 16 << 10
)

// memory has what this process wrote and read last, of the latest threads, so that the next transition of a thread needs no read. It may
// be old: a batch that relies on it names the revision, so the store refuses it then.
type memory struct {
	mu      sync.Mutex
	threads map[string]*memorized
	// order has the threads by when they were first remembered, and some that are gone.
	order []string
}

// memorized is what is known of a thread at a revision.
type memorized struct {
	revision uint64
	// cells has those that are there, nil if their value is too large, and absent those that are not. whole has the kinds of which all
	// cells are known; all means every kind.
	cells  map[cellID][]byte
	absent map[cellID]bool
	whole  map[string]bool
	all    bool
	bytes  int
}

func newMemorized(revision uint64, all bool) *memorized {
	return &memorized{revision: revision, all: all, cells: map[cellID][]byte{}, absent: map[cellID]bool{}, whole: map[string]bool{}}
}

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

// cells returns what a range selects at a revision, if all of it is known.
func (m *memory) cells(thread string, revision uint64, r store.Range) (map[cellID][]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	if t == nil || t.revision != revision {
		return nil, false
	}
	one := single(r)
	out := t.selected(r)
	known := t.all || t.whole[r.Kind] || one && (len(out) > 0 || t.absent[cellID{r.Kind, r.From}])
	for id, value := range out {
		known = known && value != nil
		out[id] = bytes.Clone(value)
	}
	return out, known
}

// single reports whether a range selects one cell.
func single(r store.Range) bool { return r.To == r.From+"\x00" }

func (t *memorized) selected(r store.Range) map[cellID][]byte {
	out := map[cellID][]byte{}
	if id := (cellID{r.Kind, r.From}); single(r) {
		if value, ok := t.cells[id]; ok {
			out[id] = value
		}
		return out
	}
	for id, value := range t.cells {
		if id.kind == r.Kind && r.Contains(id.key) {
			out[id] = value
		}
	}
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
		t = newMemorized(revision, revision == 0)
	}
	for i := range cells {
		t.set(&cells[i])
	}
	for _, r := range ranges {
		switch {
		case r.From == "" && r.To == "":
			t.whole[r.Kind] = true
		case single(r) && len(t.selected(r)) == 0:
			t.absent[cellID{r.Kind, r.From}] = true
		}
	}
	m.remember(thread, t)
}

// wrote takes a batch that made a revision.
func (m *memory) wrote(b *store.Batch, revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[b.Thread]
	if t != nil && t.revision > revision {
		return
	}
	if t == nil || t.revision != b.Base {
		t = newMemorized(revision, b.Base == 0)
	}
	t.revision = revision
	for _, r := range b.Delete {
		for id := range t.selected(r) {
			t.remove(id)
		}
		if single(r) {
			t.absent[cellID{r.Kind, r.From}] = true
		}
	}
	for i := range b.Put {
		t.set(&b.Put[i])
	}
	m.remember(b.Thread, t)
}

// cellBytes is what a cell takes besides its names and its value, about.
const cellBytes = 64

func (t *memorized) set(c *store.Cell) {
	id := cellID{c.Kind, c.Key}
	t.remove(id)
	delete(t.absent, id)
	t.cells[id] = nil
	if len(c.Value) <= memoryValue {
		t.cells[id] = append([]byte{}, c.Value...)
	}
	t.bytes += len(id.kind) + len(id.key) + len(t.cells[id]) + cellBytes
}

func (t *memorized) remove(id cellID) {
	if value, ok := t.cells[id]; ok {
		t.bytes -= len(id.kind) + len(id.key) + len(value) + cellBytes
		delete(t.cells, id)
	}
}

// remember remembers a thread, unless it is large, and forgets the oldest. The caller holds the lock.
func (m *memory) remember(thread string, t *memorized) {
	if t.bytes+cellBytes*len(t.absent) > memoryBytes {
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
