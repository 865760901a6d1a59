package natsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// A reader that waits reads again so long after a message, and then ever later: a message arrives before it is stored, or not at all.
const (
	readSoon = 5 * time.Millisecond
	readLate = 2 * time.Second
)

// ReadEvents implements store.Events.
func (s *Store) ReadEvents(
	ctx context.Context, name string, after uint64, limit int, patience time.Duration,
) (list []store.EventBatch, err error) {
	stream, err := s.eventStream(ctx)
	if errors.Is(err, fs.ErrNotExist) { // Config.Existing, and no process has written events yet
		return nil, wait.For(ctx, patience)
	}
	if err == nil {
		list, err = s.batches(ctx, stream, name, after, limit)
	}
	if err == nil && len(list) == 0 && patience > 0 {
		list, err = s.awaitBatches(ctx, stream, name, after, limit, patience)
	}
	if err != nil {
		return nil, fmt.Errorf("natsstore: events of %.80q: %w", name, err)
	}
	return list, nil
}

// awaitBatches subscribes to the messages of a stream, and reads when there is one.
func (s *Store) awaitBatches(
	ctx context.Context, stream jetstream.Stream, name string, after uint64, limit int, patience time.Duration,
) ([]store.EventBatch, error) {
	arrived := make(chan *nats.Msg, 1)
	sub, err := s.nc.ChanSubscribe(s.names.events(name), arrived)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it may have ended with the connection
	if err := s.ask(ctx, s.nc.FlushWithContext); err != nil {
		return nil, err
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	for late := readSoon; ; late = min(2*late, readLate) {
		list, err := s.batches(ctx, stream, name, after, limit)
		if err != nil || len(list) > 0 {
			return list, err
		}
		again := time.NewTimer(late)
		select {
		case <-arrived:
			late = readSoon / 2
		case <-again.C:
		case <-over.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		again.Stop()
	}
}

// batches reads what comes after a number.
func (s *Store) batches(
	ctx context.Context, stream jetstream.Stream, name string, after uint64, limit int,
) (list []store.EventBatch, err error) {
	last, _, err := s.lastBatch(ctx, stream, s.names.events(name))
	if err != nil || last.Last <= after {
		return nil, err
	}
	_, err = s.walk(ctx, stream, s.names.events(name), func(b store.EventBatch) bool {
		if b.Stream = name; b.Last > after && len(list) < limit {
			list = append(list, b)
		}
		return len(list) < limit
	})
	return list, err
}

// walk reads the batches of a subject in order, until one is refused. It returns the sequence of that one, or that after the last one.
func (s *Store) walk(ctx context.Context, stream jetstream.Stream, subject string, take func(store.EventBatch) bool) (uint64, error) {
	for at := uint64(1); ; {
		var msg *jetstream.RawStreamMsg
		err := s.ask(ctx, func(ctx context.Context) (err error) {
			msg, err = stream.GetMsg(ctx, at, jetstream.WithGetMsgSubject(subject))
			return err
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return at, nil
		}
		if err != nil {
			return 0, err
		}
		if b, err := batchOf(msg); err != nil || !take(b) {
			return msg.Sequence, err
		}
		at = msg.Sequence + 1
	}
}

// dropBatches deletes the first batches of a subject that are old.
func (s *Store) dropBatches(ctx context.Context, stream jetstream.Stream, subject string, old func(store.EventBatch) bool) error {
	end, err := s.walk(ctx, stream, subject, old)
	if err != nil || end <= 1 {
		return err
	}
	return s.ask(ctx, func(ctx context.Context) error {
		return stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(end))
	})
}
