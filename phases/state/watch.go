package state

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// maxWatchers bounds the watchers of one store.
const maxWatchers = 64

// Change tells a watcher of one commit.
type Change struct {
	Previous, Revision uint64
	// Updates is how many there were, Keys the names that they touched, sorted.
	Updates int
	Keys    []string
	// Snapshot is the state right after the commit.
	Snapshot Snapshot
}

// watchers are notified of commits in the order of their revisions: the one that releases the
// store delivers what waits, also for others.
type watchers struct {
	mu      sync.Mutex
	next    int
	list    map[int]func(Change)
	waiting []Change
	busy    bool
}

// Watch calls fn after each commit, until stop is called. Calls come one at a
// time, in the order of the revisions, watchers in the order in which they came; a
// watcher may commit, and is notified of that when it has returned. It fails beyond 64 watchers.
func (s *Store) Watch(fn func(Change)) (stop func(), err error) {
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) >= maxWatchers {
		return nil, errors.New("state: there are 64 watchers already; stop one of them")
	}
	if w.list == nil {
		w.list = make(map[int]func(Change))
	}
	id := w.next
	w.next++
	w.list[id] = fn
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.list, id)
	}, nil
}

// queue adds a commit, if anyone watches.
func (w *watchers) queue(c Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) > 0 {
		w.waiting = append(w.waiting, c)
	}
}

func (w *watchers) deliver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return
	}
	w.busy = true
	defer func() { w.busy = false }()
	for len(w.waiting) > 0 {
		change := w.waiting[0]
		w.waiting = w.waiting[1:]
		for _, id := range slices.Sorted(maps.Keys(w.list)) {
			if fn := w.list[id]; fn != nil {
				w.call(fn, change)
			}
		}
	}
}

// call calls a watcher without the lock, and takes it back also when it panics.
func (w *watchers) call(fn func(Change), change Change) {
	w.mu.Unlock()
	defer w.mu.Lock()
	fn(change)
}
