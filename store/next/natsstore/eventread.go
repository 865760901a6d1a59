package natsstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store"
)

// ReadEvents implements store.Events.
func (s *Store) ReadEvents(ctx context.Context, name string, after uint64, limit int, wait time.Duration) (list []store.EventBatch, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	stream, err := s.eventStream(ctx)
	if err == nil {
		list, err = s.batches(ctx, stream, name, after, limit)
	}
	if err == nil && len(list) == 0 && wait > 0 {
		list, err = s.awaitBatches(ctx, stream, name, after, limit, wait)
	}
	if err != nil {
		return nil, fmt.Errorf("natsstore: events of %.80q: %w", name, err)
	}
	return list, nil
}

// A reader that waits reads again so long after a message, and then ever later: a message arrives before it is stored, or not at all.
const (
	readSoon = 5 * time.Millisecond
	readLate = 2 * time.Second
)

// awaitBatches subscribes to the messages of a stream, and reads when there is one.
func (s *Store) awaitBatches(ctx context.Context, stream jetstream.Stream, name string, after uint64, limit int, wait time.Duration) ([]store.EventBatch, error) {
	sub, err := s.nc.SubscribeSync(s.names.events(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it may have ended with the connection
	if err := s.ask(ctx, s.nc.FlushWithContext); err != nil {
		return nil, err
	}
	until, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for late := readSoon; ; late = min(2*late, readLate) {
		list, err := s.batches(ctx, stream, name, after, limit)
		if err != nil || len(list) > 0 {
			return list, err
		}
		arrived, err := next(until, sub, late)
		if arrived {
			late = readSoon / 2
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case until.Err() != nil:
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
}

// next waits for a message, for no longer than until and late allow.
func next(until context.Context, sub *nats.Subscription, late time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(until, late)
	defer cancel()
	_, err := sub.NextMsgWithContext(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return false, nil
	case errors.Is(err, nats.ErrSlowConsumer): // which lost some
		return true, nil
	}
	return err == nil, err
}

// batches reads what comes after a number.
func (s *Store) batches(ctx context.Context, stream jetstream.Stream, name string, after uint64, limit int) (list []store.EventBatch, err error) {
	last, err := s.lastBatch(ctx, stream, name)
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
		b, err := batchOf("", msg)
		if err != nil {
			return 0, err
		}
		if !take(b) {
			return msg.Sequence, nil
		}
		at = msg.Sequence + 1
	}
}
