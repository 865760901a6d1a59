package natsstore

import (
	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/store"
)

// state is what the operations add up to. The lock of the mirror guards it.
type state struct {
	threads map[string]*thread
	// indexes has the cells of each group in the order of Scan, unique the holder of each unique place.
	indexes map[place]*btree.BTreeG[store.Ref]
	unique  map[place]cellID
	// memory is how many more bytes of entries may be kept.
	memory int
}

// place is a group of an index, or a place in it.
type place struct{ name, group, key string }

// cellID names a cell.
type cellID struct{ thread, kind, key string }

// thread is the state of one.
type thread struct {
	name string
	// seq is the sequence of the latest message, revision that of the latest operation, which a snapshot keeps.
	seq, revision uint64
	// exists is false for a thread that was dropped, of which only the tombstone is left.
	exists bool
	// damaged is set while operations are missing: a snapshot that replaced them may be on its way.
	damaged bool
	cells   map[string]*btree.Map[string, store.Cell] // by kind
	logs    map[string]*log
	applied []applied

	// live is about how many bytes a snapshot would have, logged how many the messages have, base how many of these the last snapshot has,
	// ops how many messages there are.
	live, logged, base, ops int
}

// log has the entries after a number.
type log struct {
	after   uint64
	entries []entry
}

func (l *log) last() uint64 { return l.after + uint64(len(l.entries)) }

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

// first is the chunk of the first entry, nil if it is in none.
func (l *log) first() *chunk {
	if len(l.entries) == 0 {
		return nil
	}
	return l.entries[0].chunk
}

// chunk is entries of a log in messages of their own.
type chunk struct{ seq, parts, count uint64 }

func newState(memory int) *state {
	return &state{
		threads: map[string]*thread{}, indexes: map[place]*btree.BTreeG[store.Ref]{}, unique: map[place]cellID{}, memory: memory,
	}
}

func newThread(name string) *thread {
	return &thread{name: name, cells: map[string]*btree.Map[string, store.Cell]{}, logs: map[string]*log{}}
}

// thread returns a thread, an empty one if there is none.
func (s *state) thread(name string) *thread {
	if t := s.threads[name]; t != nil {
		return t
	}
	return newThread(name)
}

// seq is the sequence of the latest message of a thread.
func (s *state) seq(name string) uint64 { return s.thread(name).seq }

// selected returns the cells of a range.
func (t *thread) selected(r store.Range) (out []store.Cell) {
	cells := t.cells[r.Kind]
	if cells == nil {
		return nil
	}
	cells.Ascend(r.From, func(key string, c store.Cell) bool {
		if !r.Contains(key) {
			return false
		}
		out = append(out, c)
		return r.Limit <= 0 || len(out) < r.Limit
	})
	return out
}

// cellOverhead is about what a cell or an entry adds to a message besides its bytes.
const cellOverhead = 16

func sizeOf(c store.Cell) int {
	n := cellOverhead + len(c.Kind) + len(c.Key) + len(c.Value)
	for _, k := range c.Index {
		n += cellOverhead + len(k.Name) + len(k.Group) + len(k.Key)
	}
	return n
}
