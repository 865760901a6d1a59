package mailbox

import (
	"maps"
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of what a process remembers of threads that it has used lately.
const (
	rememberedThreads = 1024
	rememberedBytes   = 16 << 10 // of a thread
)

// memory has what was seen of threads, by id: the store is not asked again for what this process has written. What another process has changed
// since is found when the store refuses a batch.
type memory struct {
	mu sync.Mutex
	of map[string]*seen
	// order is that in which they came.
	order []string
}

// get returns what was seen of a thread, nil if that is not known any more.
func (m *memory) get(thread string) *seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[thread]
}

// keep remembers a thread, unless it is large, as the latest one.
func (m *memory) keep(thread string, s *seen) {
	large := s.bytes() > rememberedBytes
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]*seen{}
	}
	if _, known := m.of[thread]; !known {
		m.order = append(m.order, thread)
	}
	m.of[thread] = s
	if large {
		m.of[thread] = nil // its place stays
	}
	if len(m.order) > rememberedThreads {
		delete(m.of, m.order[0])
		m.order = m.order[1:]
	}
}

// seen is a thread as the latest transition of this process left it, so that the next one need not read it. It may be old: a batch that relies
// on it names the revision, and the store refuses it then. A nil one knows nothing.
type seen struct {
	mu   sync.Mutex
	last *view
}

// view begins to read a thread, with what is known of it.
func (s *seen) view(thread string) *view {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if v := s.last; v != nil && v.thread == thread {
			return &view{
				thread: thread, revision: v.revision, started: true, guessed: true, whole: v.whole,
				cells: maps.Clone(v.cells), length: v.length, read: maps.Clone(v.read),
			}
		}
	}
	return &view{thread: thread, cells: map[cellID][]byte{}, read: map[store.Range]bool{}}
}

func (s *seen) set(v *view) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if v == nil || s.last == nil || v.revision >= s.last.revision {
			s.last = v
		}
	}
}

// bytes is about how much a view holds.
func (s *seen) bytes() (n int) {
	if s == nil {
		return 0
	}
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
