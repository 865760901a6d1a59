package queue

import (
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of what a process remembers of threads that it has used lately.
const (
	recentThreads = 1024
	recentBytes   = 16 << 10 // of a thread
)

// recent has what was seen of threads, by id: the store is not asked again for what this process has written. What another process has changed
// since is found when the store refuses a batch.
type recent struct {
	mu    sync.Mutex
	seen  map[string]*seen
	order []string // in which they came, also those that are not there any more
}

// get returns what was seen of a thread, nil if that is not known any more.
func (r *recent) get(thread string) *seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[thread]
}

func (r *recent) put(thread string, s *seen) {
	if s == nil {
		return
	}
	small := s.bytes() <= recentBytes
	r.mu.Lock()
	defer r.mu.Unlock()
	if !small {
		delete(r.seen, thread)
		return
	}
	if r.seen == nil {
		r.seen = map[string]*seen{}
	}
	if r.seen[thread] == nil {
		r.order = append(r.order, thread)
	}
	r.seen[thread] = s
	for len(r.order) > recentThreads {
		delete(r.seen, r.order[0])
		r.order = r.order[1:]
	}
}

// bytes is about how much a view holds.
func (s *seen) bytes() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil {
		for id, value := range s.last.cells {
			n += len(id.key) + len(value)
		}
	}
	return n
}

// lacks notes cells that the thread cannot have, since their ids were made at random just now.
func (s *seen) lacks(cells ...store.Range) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range cells {
		if s.last != nil {
			s.last.read[r] = true
		}
	}
}

// unread is a thread that this process has never seen, and that is new, most likely. The store refuses what was made of it if it is not.
func unread(thread string) *seen {
	return &seen{last: &view{
		thread: thread, started: true, guessed: true, whole: true, cells: map[cellID][]byte{}, read: map[store.Range]bool{},
	}}
}
