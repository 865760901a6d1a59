package memstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

var _ mailbox.EventLog = (*Store)(nil)

// events are the batches of each dispatch.
type events struct {
	mu   sync.Mutex
	logs map[string][]mailbox.EventBatch
	// more is closed when something is added.
	more chan struct{}
}

func newEvents() events {
	return events{logs: map[string][]mailbox.EventBatch{}, more: make(chan struct{})}
}

// AppendEvents implements mailbox.EventLog.
func (s *Store) AppendEvents(ctx context.Context, list ...mailbox.EventBatch) (refused []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e := &s.events
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range list {
		log := e.logs[b.Dispatch]
		var last mailbox.EventBatch
		if len(log) > 0 {
			last = log[len(log)-1]
		}
		add, no := b.Follows(last)
		if no {
			refused = append(refused, b.Dispatch)
		}
		if !add {
			continue
		}
		b.Data = slices.Clone(b.Data)
		log = slices.DeleteFunc(log, func(old mailbox.EventBatch) bool { return old.Last < b.Keep })
		e.logs[b.Dispatch] = append(log, b)
	}
	close(e.more)
	e.more = make(chan struct{})
	return refused, nil
}

// ReadEvents implements mailbox.EventLog.
func (s *Store) ReadEvents(ctx context.Context, dispatch string, after uint64, limit int, wait time.Duration) ([]mailbox.EventBatch, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		list, more := s.events.after(dispatch, after, limit)
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

func (e *events) after(dispatch string, after uint64, limit int) ([]mailbox.EventBatch, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []mailbox.EventBatch
	for _, b := range e.logs[dispatch] {
		if b.Last > after && len(list) < limit {
			b.Data = slices.Clone(b.Data)
			list = append(list, b)
		}
	}
	return list, e.more
}

// PurgeEvents implements mailbox.EventLog.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.events.drop(func(b mailbox.EventBatch) bool { return b.At.Before(before) })
	return nil
}

// drop drops batches.
func (e *events) drop(old func(mailbox.EventBatch) bool) {
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

// forget drops all that a dispatch has.
func (e *events) forget(dispatch string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.logs, dispatch)
}
