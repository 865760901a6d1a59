package natsstore

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store"
)

// PurgeEvents implements store.Events.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	stream, err := s.eventStream(ctx)
	if err != nil {
		return err
	}
	var info *jetstream.StreamInfo
	err = s.ask(ctx, func(ctx context.Context) (err error) {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter(s.names.eventStream()+".*"))
		return err
	})
	if err != nil {
		return fmt.Errorf("natsstore: purge events: %w", err)
	}
	for subject := range info.State.Subjects {
		if err := s.drop(ctx, stream, subject, func(b store.EventBatch) bool { return b.At.Before(before) }); err != nil {
			return fmt.Errorf("natsstore: purge events: %w", err)
		}
	}
	s.events.clear()
	return nil
}

// DropEvents implements store.Events.
func (s *Store) DropEvents(ctx context.Context, streams ...string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	stream, err := s.eventStream(ctx)
	for _, name := range streams {
		if err != nil {
			return fmt.Errorf("natsstore: drop events: %w", err)
		}
		s.events.forget(name)
		err = s.ask(ctx, func(ctx context.Context) error {
			return stream.Purge(ctx, jetstream.WithPurgeSubject(s.names.events(name)))
		})
	}
	return err
}

// drop deletes the first batches of a subject that are old.
func (s *Store) drop(ctx context.Context, stream jetstream.Stream, subject string, old func(store.EventBatch) bool) error {
	end, err := s.walk(ctx, stream, subject, old)
	if err != nil || end <= 1 {
		return err
	}
	return s.ask(ctx, func(ctx context.Context) error {
		return stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(end))
	})
}

// clear forgets all streams.
func (e *events) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.tails)
}
