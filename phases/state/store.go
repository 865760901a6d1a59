package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

var (
	// ErrConflict is a commit that touches a key which another writer changed since
	// the revision that it was made from.
	ErrConflict = errors.New("revision conflict")
	// ErrUnknownKey is an update of a key that no plugin declares.
	ErrUnknownKey = errors.New("unknown key")
)

// Store holds the values of declared keys. Make one with [New].
type Store struct {
	// now is never changed: a commit puts another one in its place.
	now atomic.Pointer[Snapshot]
	// writer is taken to commit.
	writer chan struct{}

	mu     sync.RWMutex
	keys   map[string]*Key
	owners map[string][]*Key

	watchers watchers
}

// New returns an empty store at revision 0.
func New() *Store {
	s := &Store{writer: make(chan struct{}, 1), keys: make(map[string]*Key), owners: make(map[string][]*Key)}
	s.now.Store(&Snapshot{})
	return s
}

// Snapshot returns the state as it is now.
func (s *Store) Snapshot() Snapshot { return *s.now.Load() }

// draft returns a copy of the state as it is now, for the writer to change.
func (s *Store) draft() *Snapshot {
	next := s.Snapshot()
	next.values = maps.Clone(next.values)
	if next.values == nil {
		next.values = make(map[string]entry)
	}
	return &next
}

// Install declares the keys of an owner. It fails when the owner is known or a
// name is taken, and then declares nothing. Values that were kept for its thread keys become
// visible.
func (s *Store) Install(owner string, keys ...*Key) error {
	return s.declare(owner, keys, false)
}

// Redeclare is Install for an owner that may be known already: its keys are replaced,
// and their values stay.
func (s *Store) Redeclare(owner string, keys ...*Key) error {
	return s.declare(owner, keys, true)
}

func (s *Store) declare(owner string, keys []*Key, replace bool) error {
	s.writer <- struct{}{}
	defer s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.owners[owner]
	if known && !replace {
		return fmt.Errorf("state: plugin already installed: %s", owner)
	}
	for i, k := range keys {
		if err := k.check(); err != nil {
			return err
		}
		taken := s.keys[k.Name] != nil && !slices.Contains(old, s.keys[k.Name])
		if taken || slices.ContainsFunc(keys[:i], func(o *Key) bool { return o.Name == k.Name }) {
			return fmt.Errorf("state: key already registered: %s", k.Name)
		}
	}
	for _, k := range old {
		delete(s.keys, k.Name)
	}
	next := s.draft()
	for _, k := range keys {
		s.keys[k.Name] = k
		if e, ok := next.values[k.Name]; ok && e.raw {
			next.admit(k, e)
		}
	}
	s.owners[owner] = slices.Clone(keys)
	s.now.Store(next)
	return nil
}

// admit shows a value that was only kept to its key.
func (s *Snapshot) admit(k *Key, e entry) {
	if !k.thread() && !e.own {
		delete(s.values, k.Name)
	} else if value, err := k.decode(e.value); err == nil {
		s.values[k.Name] = entry{value: value, changed: e.changed}
	}
}

// Uninstall takes the keys of an owner back, with their values, except those that
// are retained. It is one commit if there were values.
func (s *Store) Uninstall(owner string) error {
	s.writer <- struct{}{}
	defer s.release()
	s.mu.Lock()
	keys, known := s.owners[owner]
	if !known {
		s.mu.Unlock()
		return fmt.Errorf("state: plugin not installed: %s", owner)
	}
	delete(s.owners, owner)
	var gone []string
	next := s.draft()
	for _, k := range keys {
		delete(s.keys, k.Name)
		e, ok := next.values[k.Name]
		switch {
		case !ok:
		case k.Retain:
			next.values[k.Name] = entry{value: e.value, changed: e.changed, raw: true, own: true}
		default:
			delete(next.values, k.Name)
			gone = append(gone, k.Name)
		}
	}
	s.mu.Unlock()
	if len(gone) == 0 {
		s.now.Store(next)
		return nil
	}
	next.revision++
	s.publish(next, gone, len(gone))
	return nil
}

// Commit applies a commit and returns the new revision, or the present one when
// there is nothing to apply. It waits for other commits until ctx is done.
func (s *Store) Commit(ctx context.Context, t *Tx) (uint64, error) {
	if t.Empty() {
		return s.now.Load().revision, nil
	}
	if err := s.take(ctx); err != nil {
		return 0, err
	}
	defer s.release()
	return s.commit(t)
}

// Hold keeps other commits waiting until release is called. Commits in between go
// through the function that it returns.
func (s *Store) Hold(ctx context.Context) (commit func(*Tx) (uint64, error), release func(), err error) {
	if err := s.take(ctx); err != nil {
		return nil, nil, err
	}
	return s.commit, sync.OnceFunc(s.release), nil
}

// Apply commits a batch. Values are copied.
func (s *Store) Apply(ctx context.Context, b Batch) (uint64, error) {
	if len(b.Updates) == 0 {
		return s.now.Load().revision, nil
	}
	if err := s.take(ctx); err != nil {
		return 0, err
	}
	defer s.release()
	t, err := s.open(b)
	if err != nil {
		return 0, err
	}
	return s.commit(t)
}

// open turns a batch into a commit on the present state. The caller is the writer.
func (s *Store) open(b Batch) (*Tx, error) {
	t := s.Begin()
	revision := t.base.Revision()
	for i, u := range b.Updates {
		k := s.Key(u.Key)
		if k == nil {
			return nil, fmt.Errorf("state: update %d: %w: %.140s", i, ErrUnknownKey, u.Key)
		}
		if b.Base != nil && (*b.Base > revision || !k.Shared(u.Op) && t.base.Changed(k) > *b.Base) {
			return nil, fmt.Errorf("state: key %q: %w: expected %d, actual %d", k.Name, ErrConflict, *b.Base, revision)
		}
		value, _, err := Clone(u.Value, k.limit())
		if err == nil {
			err = t.Update(k, u.Op, value)
		}
		if err != nil {
			return nil, fmt.Errorf("state: update %d: key %q: %w", i, k.Name, err)
		}
	}
	t.Accept()
	return t, nil
}

// commit is Commit for the writer.
func (s *Store) commit(t *Tx) (uint64, error) {
	now := s.now.Load()
	if t.Empty() {
		return now.revision, nil
	}
	for k := range t.values {
		if s.Key(k.Name) == nil {
			return 0, fmt.Errorf("state: %w: %.140s", ErrUnknownKey, k.Name)
		}
	}
	values, err := t.settle(now)
	if err != nil {
		return 0, err
	}
	next := s.draft()
	next.revision++
	names := make([]string, 0, len(values))
	for k, value := range values {
		next.values[k.Name] = entry{value: value, changed: next.revision}
		names = append(names, k.Name)
	}
	s.publish(next, names, t.mark)
	return next.revision, nil
}

// publish makes a commit the present state, and queues it for the watchers. The caller is the writer.
func (s *Store) publish(next *Snapshot, keys []string, updates int) {
	s.now.Store(next)
	slices.Sort(keys)
	s.watchers.queue(Change{Previous: next.revision - 1, Revision: next.revision, Updates: updates, Keys: keys, Snapshot: *next})
}

// Key returns a declared key, or nil.
func (s *Store) Key(name string) *Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keys[name]
}

func (s *Store) take(ctx context.Context) error {
	select {
	case s.writer <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.writer <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("state: waiting for another commit: %w", ctx.Err())
	}
}

// release lets the next writer in, and then tells the watchers.
func (s *Store) release() {
	<-s.writer
	s.watchers.deliver()
}
