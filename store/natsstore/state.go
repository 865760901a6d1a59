package natsstore

import (
	"fmt"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/state"
)

// thread is what is known of the messages of a thread. That of a dropped one has the tombstone.
type thread struct {
	// seq is the sequence of the latest message.
	seq uint64
	// damaged is set while operations are missing: a snapshot that replaced them may be on its way.
	damaged bool
	// live is about how many bytes a snapshot would have, logged how many the messages have, base how many of these the last snapshot has,
	// ops how many messages there are.
	live, logged, base, ops int
}

// entry is an entry, or where it is.
type entry struct {
	data []byte // nil if it is not in memory
	// chunk has the entry, or else the operation with that sequence. Index is its place there.
	chunk *chunk
	seq   uint64
	index int
	// size is what the entry adds to thread.live; 0 in a chunk.
	size int
}

// chunk is entries of a log in messages of their own.
type chunk struct{ seq, parts, count uint64 }

// firstChunk is the chunk of the first entry, nil if it is in none.
func firstChunk(list []entry) *chunk {
	if len(list) == 0 {
		return nil
	}
	return list[0].chunk
}

const (
	// cellOverhead is about what a cell or an entry adds to a message besides its bytes.
	cellOverhead = 16
	// maxKept is the size of the largest entry that is kept in memory.
	maxKept = 4 << 10
)

func sizeOf(c store.Cell) int {
	n := cellOverhead + len(c.Kind) + len(c.Key) + len(c.Value)
	for _, k := range c.Index {
		n += cellOverhead + len(k.Name) + len(k.Group) + len(k.Key)
	}
	return n
}

// verdict is what becomes of a batch.
type verdict struct {
	state.Verdict

	// The message to write if it is accepted, and what must precede it.
	prev        uint64
	fresh, gone bool
	// stale is a refusal for good: another operation has followed the revision that the batch was made for.
	stale bool
}

// decide checks a batch. A refusal counts if the state is that of the stream.
func (m *mirror) decide(b *store.Batch) (v verdict) {
	t := m.thread(b.Thread)
	if t.damaged {
		v.Refusal = fmt.Errorf("%w: operations are missing", errStale)
		return v
	}
	v.Verdict = m.state.Check(b)
	v.stale = v.Revision == 0 && b.Base != 0 && b.Base < m.state.Thread(b.Thread).Revision
	v.prev, v.fresh = t.seq, !m.state.Has(b.Thread)
	v.gone = b.Drop && len(b.Put)+len(b.Append) == 0
	return v
}

// leftover is what an operation made unnecessary in the stream.
type leftover struct {
	places []state.Place
	// chunks has the logs whose chunks before a sequence have no entries.
	chunks map[string]uint64
}

// apply makes the changes of an operation.
func (m *mirror) apply(name string, op *operation, seq uint64) leftover {
	b, t := op.batch(name), m.threads[name]
	old := m.state.Apply(&b, seq, func(n int) entry {
		e := m.entry(b.Append[n].Data)
		e.seq, e.index = seq, n
		t.live += e.size
		return e
	})
	for i := range b.Put {
		t.live += sizeOf(b.Put[i])
	}
	return m.forget(name, old, seq)
}

// entry makes an entry of an operation, and keeps its data if there is room.
func (m *mirror) entry(data []byte) entry {
	e := entry{size: cellOverhead + len(data)}
	if n := len(data); n <= maxKept && n <= m.memory {
		e.data = append([]byte{}, data...)
		m.memory -= n
	}
	return e
}

// forget accounts for what was removed from a thread.
func (m *mirror) forget(name string, removed state.Removed[entry], seq uint64) leftover {
	old, t := leftover{chunks: map[string]uint64{}}, m.threads[name]
	for _, c := range removed.Cells {
		t.live -= sizeOf(c)
		for _, k := range c.Index {
			if p := (state.Place{Name: k.Name, Group: k.Group, Key: k.Key}); k.Unique && !m.state.Held(p) {
				old.places = append(old.places, p)
			}
		}
	}
	for log, list := range removed.Entries {
		for i := range list {
			m.memory += len(list[i].data)
			t.live -= list[i].size
		}
		var left *chunk
		if l := m.state.Thread(name).Logs[log]; l != nil {
			left = firstChunk(l.Entries)
		}
		switch first := firstChunk(list); {
		case first == nil || first == left: // no chunk has become empty
		case left != nil:
			old.chunks[log] = left.seq
		default:
			old.chunks[log] = seq
		}
	}
	return old
}

// clear deletes all that is known of a thread.
func (m *mirror) clear(name string) {
	m.forget(name, m.state.Drop(name), 0)
	*m.threads[name] = thread{}
}

// load replaces a thread by a snapshot. Entries that are in memory stay there if no message was missed.
func (m *mirror) load(name string, snap *snapshot, seq uint64, missed bool) {
	t, known := m.threads[name], m.state.Thread(name).Logs
	if missed || t.damaged {
		known = nil
	}
	m.clear(name)
	logs := map[string]*state.Log[entry]{}
	for _, r := range snap.Logs {
		l := r.log(seq)
		if old := known[r.Name]; old != nil {
			for i := range min(len(l.Entries), len(old.Entries)) {
				l.Entries[i].data = old.Entries[i].data
				m.memory -= len(l.Entries[i].data)
			}
		}
		logs[r.Name] = l
	}
	for _, c := range snap.Cells {
		t.live += sizeOf(c)
	}
	m.state.Restore(name, &state.Thread[entry]{Revision: snap.Revision, Logs: logs, Applied: snap.Applied}, snap.Cells)
}

// log makes the log of a snapshot.
func (r *logRecord) log(seq uint64) *state.Log[entry] {
	l := &state.Log[entry]{After: r.After}
	for _, record := range r.Chunks {
		c := &chunk{seq: record.Seq, parts: record.Parts, count: record.Count}
		if record.Back > 0 {
			c.seq = seq - record.Back
		}
		for i := record.Skip; i < record.Count; i++ {
			l.Entries = append(l.Entries, entry{chunk: c, index: int(i)}) //nolint:gosec // it is small
		}
	}
	return l
}
