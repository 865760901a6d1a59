package memstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// events are the batches of each stream.
type events struct {
	mu   sync.Mutex
	logs map[string][]store.EventBatch
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
		s.hub.Notify(wait.StreamTopic(b.Stream))
	}
	return refused, nil
}

// ReadEvents implements store.Events.
func (s *Store) ReadEvents(ctx context.Context, stream string, after uint64, limit int, patience time.Duration) ([]store.EventBatch, error) {
	return s.hub.Events(ctx, wait.StreamTopic(stream), patience, func() ([]store.EventBatch, error) {
		return s.events.after(stream, after, limit), context.Cause(ctx)
	})
}

func (e *events) after(stream string, after uint64, limit int) (list []store.EventBatch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.logs[stream] {
		if b.Last > after && len(list) < limit {
			b.Data = slices.Clone(b.Data)
			list = append(list, b)
		}
	}
	return list
}

// PurgeEvents implements store.Events.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	e := &s.events
	e.mu.Lock()
	defer e.mu.Unlock()
	for stream, log := range e.logs {
		if log = slices.DeleteFunc(log, func(b store.EventBatch) bool { return b.At.Before(before) }); len(log) == 0 {
			delete(e.logs, stream)
		} else {
			e.logs[stream] = log
		}
	}
	return nil
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
