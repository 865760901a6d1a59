package memstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// events are the batches of each stream.
type events struct {
	mu   sync.Mutex
	logs map[string][]store.EventBatch
	// more is closed when something is added.
	more chan struct{}
}

func newEvents() events {
	return events{logs: map[string][]store.EventBatch{}, more: make(chan struct{})}
}

// AppendEvents implements store.Events.
func (s *Store) AppendEvents(ctx context.Context, list ...store.EventBatch) (refused []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e := &s.events
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range list {
		log := e.logs[b.Stream]
		var last store.EventBatch
		if len(log) > 0 {
			last = log[len(log)-1]
		}
		add, no := b.Follows(last)
		if no {
			refused = append(refused, b.Stream)
		}
		if !add {
			continue
		}
		b.Data = slices.Clone(b.Data)
		log = slices.DeleteFunc(log, func(old store.EventBatch) bool { return old.Last < b.Keep })
		e.logs[b.Stream] = append(log, b)
	}
	close(e.more)
	e.more = make(chan struct{})
	return refused, nil
}

// ReadEvents implements store.Events.
func (s *Store) ReadEvents(ctx context.Context, stream string, after uint64, limit int, wait time.Duration) ([]store.EventBatch, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		list, more := s.events.after(stream, after, limit)
		if len(list) > 0 || wait <= 0 {
			return list, nil
		}
		select {
		case <-more:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
		}
	}
}

func (e *events) after(stream string, after uint64, limit int) ([]store.EventBatch, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []store.EventBatch
	for _, b := range e.logs[stream] {
		if b.Last > after && len(list) < limit {
			b.Data = slices.Clone(b.Data)
			list = append(list, b)
		}
	}
	return list, e.more
}

// PurgeEvents implements store.Events.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.events.drop(func(b store.EventBatch) bool { return b.At.Before(before) })
	return nil
}

// drop drops batches.
func (e *events) drop(old func(store.EventBatch) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, log := range e.logs {
		if log = slices.DeleteFunc(log, old); len(log) == 0 {
			delete(e.logs, id)
		} else {
			e.logs[id] = log
		}
	}
}

// DropEvents implements store.Events.
func (s *Store) DropEvents(ctx context.Context, streams ...string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	for _, stream := range streams {
		delete(s.events.logs, stream)
	}
	return nil
}
