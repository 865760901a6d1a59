package memstore

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/store"
)

// Store is a store.Store with store.Events and store.Clock. Make one with [New].
type Store struct {
	mu       sync.Mutex
	revision uint64
	threads  map[string]*thread
	// indexes has the cells of each group in the order of Scan, unique the holder of each unique place.
	indexes map[place]*btree.BTreeG[store.Ref]
	unique  map[place]cellID
	topics  map[string]map[chan struct{}]bool

	events events
}

// place is a group of an index, or a place in it.
type place struct{ name, group, key string }

// cellID names a cell.
type cellID struct{ thread, kind, key string }

// thread is the state of one. A thread without cells and logs is not kept.
type thread struct {
	revision uint64
	cells    map[string]*btree.Map[string, store.Cell] // by kind
	logs     map[string]*log
	applied  []applied
}

// log has the entries after a number.
type log struct {
	after   uint64
	entries [][]byte
}

func (l *log) last() uint64 { return l.after + uint64(len(l.entries)) }

// applied is a batch that the thread remembers.
type applied struct {
	id       string
	revision uint64
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Events = (*Store)(nil)
	_ store.Clock  = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{
		threads: map[string]*thread{}, indexes: map[place]*btree.BTreeG[store.Ref]{}, unique: map[place]cellID{},
		topics: map[string]map[chan struct{}]bool{}, events: newEvents(),
	}
}

func newThread() *thread {
	return &thread{cells: map[string]*btree.Map[string, store.Cell]{}, logs: map[string]*log{}}
}

// Time implements store.Clock: the clock of the process.
func (*Store) Time(context.Context) (time.Time, error) { return time.Now(), nil }

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, id string, q store.Query) (store.Snapshot, error) {
	if err := context.Cause(ctx); err != nil {
		return store.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[id]
	if t == nil {
		t = newThread()
	}
	out := store.Snapshot{Revision: t.revision, Last: map[string]uint64{}}
	for _, r := range q.Cells {
		for _, c := range t.selected(r) {
			out.Cells = append(out.Cells, store.Cell{Kind: c.Kind, Key: c.Key, Value: bytes.Clone(c.Value)})
		}
	}
	for _, span := range q.Entries {
		l := t.logs[span.Log]
		if l == nil {
			out.Last[span.Log] = 0
			continue
		}
		out.Last[span.Log] = l.last()
		first := max(span.From, l.after+1)
		for seq := first; seq <= l.last() && seq-first < uint64(max(span.Limit, 0)); seq++ { //nolint:gosec // not negative
			out.Entries = append(out.Entries, store.Entry{Log: span.Log, Seq: seq, Data: bytes.Clone(l.entries[seq-l.after-1])})
		}
	}
	return out, nil
}

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

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, q store.Scan) (out []store.Ref, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	index := s.indexes[place{name: q.Index, group: q.Group}]
	if index == nil {
		return nil, nil
	}
	from := store.Ref{IndexKey: q.From}
	if from.Before(q.After) {
		from = q.After
	}
	index.Ascend(from, func(r store.Ref) bool {
		if len(out) >= q.Limit || (q.To != "" && r.IndexKey >= q.To) {
			return false
		}
		if q.After.Before(r) {
			if q.Values {
				c, _ := s.threads[r.Thread].cells[r.Kind].Get(r.Key)
				r.Value = bytes.Clone(c.Value)
			}
			out = append(out, r)
		}
		return true
	})
	return out, nil
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, index string) (map[string]int, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for p, refs := range s.indexes {
		if p.name == index {
			out[p.group] = refs.Len()
		}
	}
	return out, nil
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[topic] == nil {
		s.topics[topic] = map[chan struct{}]bool{}
	}
	s.topics[topic][c] = true
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.topics[topic], c)
		if len(s.topics[topic]) == 0 {
			delete(s.topics, topic)
		}
		close(c)
	})
	return c, nil
}

// notify wakes those who watch a topic. The caller holds the lock.
func (s *Store) notify(topic string) {
	for c := range s.topics[topic] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
