package state

import (
	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/store"
)

// State has all threads. E is what it keeps of an entry. Make one with [New].
type State[E any] struct {
	threads map[string]*Thread[E]
	// indexes has the cells of each group in the order of store.Scan, unique the holder of each unique place.
	indexes map[Place]*btree.BTreeG[store.Ref]
	unique  map[Place]cellID
}

// Place is a group of an index, or a place in it.
type Place struct{ Name, Group, Key string }

// cellID names a cell.
type cellID struct{ thread, kind, key string }

// Thread is the state of one.
type Thread[E any] struct {
	Revision uint64
	Logs     map[string]*Log[E]
	// Applied are the batches that the thread remembers.
	Applied []Applied

	cells map[string]*btree.Map[string, store.Cell] // by kind
}

// Log has the entries after a number.
type Log[E any] struct {
	After   uint64
	Entries []E
}

// Last is the number of the last entry that was ever appended, 0 for a log that does not exist.
func (l *Log[E]) Last() uint64 {
	if l == nil {
		return 0
	}
	return l.After + uint64(len(l.Entries))
}

// Applied is a batch that had an ID.
type Applied struct {
	ID       string
	Revision uint64
}

// New returns an empty state.
func New[E any]() *State[E] {
	return &State[E]{threads: map[string]*Thread[E]{}, indexes: map[Place]*btree.BTreeG[store.Ref]{}, unique: map[Place]cellID{}}
}

// Thread returns a thread. One that does not exist is empty, and not part of the state.
func (s *State[E]) Thread(name string) *Thread[E] {
	if t := s.threads[name]; t != nil {
		return t
	}
	return &Thread[E]{Logs: map[string]*Log[E]{}, cells: map[string]*btree.Map[string, store.Cell]{}}
}

// Has reports whether a thread exists.
func (s *State[E]) Has(name string) bool { return s.threads[name] != nil }

// Held reports whether a cell has a unique place.
func (s *State[E]) Held(p Place) bool {
	_, held := s.unique[p]
	return held
}
