package natsstore

import (
	"container/list"
	"sync"
)

// entryWeight is about how much memory an entry of a waitlist takes.
const entryWeight = 768

// shelf keeps the waitlists of threads whose queue is in pages, as they last were, so that the next one is made from what has changed.
type shelf struct {
	most int

	mu     sync.Mutex
	recent *list.List // of *shelved, the latest in front
	by     map[string]*list.Element
	size   int
}

type shelved struct {
	*waitlist

	thread string
	weight int
}

func newShelf(most int) *shelf {
	return &shelf{most: most, recent: list.New(), by: map[string]*list.Element{}}
}

// copy returns a copy of the list of a thread, or nil.
func (s *shelf) copy(thread string) *waitlist {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.by[thread]
	if !ok {
		return nil
	}
	s.recent.MoveToFront(e)
	x, _ := e.Value.(*shelved)
	return x.waitlist.copy()
}

// put keeps a copy of a list that has pages. The latest is kept however long it is.
func (s *shelf) put(thread string, w *waitlist) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(s.by[thread])
	if w == nil || w.pages.Len() == 0 {
		return
	}
	x := &shelved{w.copy(), thread, entryWeight * w.turns.Len()}
	s.by[thread] = s.recent.PushFront(x)
	for s.size += x.weight; s.size > s.most && s.recent.Len() > 1; {
		s.remove(s.recent.Back())
	}
}

func (s *shelf) remove(e *list.Element) {
	if e == nil {
		return
	}
	x, _ := s.recent.Remove(e).(*shelved)
	delete(s.by, x.thread)
	s.size -= x.weight
}
