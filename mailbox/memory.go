package mailbox

import (
	"maps"
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of what a process remembers of threads that it has used lately and has not claimed.
const (
	rememberedThreads = 1024
	rememberedBytes   = 16 << 10 // of a thread
)

// memory has what was seen of threads, by id: the store is not asked again for what this process has written. What another process has changed
// since is found when the store refuses a batch.
type memory struct {
	mu sync.Mutex
	of map[string]remembered
	// order is that in which they came.
	order []string
}

// remembered is one of them, and whether this process has claimed it.
type remembered struct {
	*seen

	claimed bool
}

// get returns what was seen of a thread, nil if that is not known any more.
func (m *memory) get(thread string) *seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[thread].seen
}

// claimState is what becomes of a thread in memory: this process claims it, does not claim it any more, or neither.
type claimState int8

const (
	asBefore claimState = iota
	nowClaimed
	nowFree
)

// keep remembers a thread, in any case while it is claimed. It reports whether it was claimed before.
func (m *memory) keep(thread string, s *seen, c claimState) (before bool) {
	large := s.bytes() > rememberedBytes
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.of[thread]
	claimed := c == nowClaimed || c == asBefore && old.claimed
	if m.of == nil {
		m.of = map[string]remembered{}
	}
	if large && !claimed {
		s = nil // its place stays
	}
	m.of[thread] = remembered{s, claimed}
	if !known {
		m.order = append(m.order, thread)
	}
	for i := 0; i < 2 && len(m.order) > rememberedThreads; i++ {
		first := m.order[0]
		if m.order = m.order[1:]; m.of[first].claimed {
			m.order = append(m.order, first)
		} else {
			delete(m.of, first)
		}
	}
	return old.claimed
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
