package memstore

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/state"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// Store is a store.Store with store.Events and store.Clock. Make one with [New].
type Store struct {
	mu       sync.Mutex
	revision uint64
	state    *state.State[[]byte]

	hub    wait.Hub
	events events
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Events = (*Store)(nil)
	_ store.Clock  = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{state: state.New[[]byte](), events: events{logs: map[string][]store.EventBatch{}}}
}

// Time implements store.Clock: the clock of the process.
func (*Store) Time(context.Context) (time.Time, error) { return time.Now(), nil }

// Apply implements store.Store. It checks the whole batch before it changes anything.
func (s *Store) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.state.Check(&b)
	switch {
	case v.Revision != 0:
		return v.Revision, nil
	case v.Refusal != nil:
		return 0, fmt.Errorf("memstore: %w", v.Refusal)
	}
	s.revision++
	s.state.Apply(&b, s.revision, func(n int) []byte { return bytes.Clone(b.Append[n].Data) })
	s.hub.Notify(b.Notify...)
	return s.revision, nil
}

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	if err := context.Cause(ctx); err != nil {
		return store.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out, entries := s.state.Read(thread, q)
	for i, data := range entries {
		out.Entries[i].Data = bytes.Clone(data)
	}
	return out, nil
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, q store.Scan) ([]store.Ref, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Scan(q), nil
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, index string) (map[string]int, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Count(index), nil
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	return s.hub.Watch(ctx, topic)
}
