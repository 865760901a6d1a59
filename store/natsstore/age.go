package natsstore

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// PurgeEvents implements mailbox.EventLog. Times are those of the servers. They keep events for as long as this asks for, and for
// an hour at least if nobody drops them.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	there, err := s.shared(ctx)
	if err != nil || !there {
		return err
	}
	stream, err := s.eventStream(ctx)
	if err != nil {
		return err
	}
	late := s.keepEvents(ctx, stream, time.Since(before).Round(time.Second))
	return errors.Join(late, stream.DropBefore(ctx, before))
}

// keepEvents makes the servers keep events for so long.
func (s *Store) keepEvents(ctx context.Context, stream *jet.Stream, age time.Duration) error {
	e := &s.events
	e.mu.Lock()
	known := e.age
	e.mu.Unlock()
	if age <= max(known, eventAge) {
		return nil
	}
	kept, err := stream.Keep(ctx, age)
	if err != nil {
		return err
	}
	if kept == 0 {
		kept = math.MaxInt64
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.age = kept
	return nil
}
