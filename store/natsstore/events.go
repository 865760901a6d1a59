package natsstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store"
)

// events are in a stream of their own, a message for each batch, which the servers delete after Config.EventTTL.
type events struct {
	mu     sync.Mutex
	stream jetstream.Stream // nil until it is needed
}

// eventRecord is the message of a batch.
type eventRecord struct {
	Fence, First, Last uint64
	At                 int64 // in nanoseconds since 1970
	Data               []byte
}

func (n names) eventStream() string { return n.root + "-events" }

func (n names) events(stream string) string { return n.root + "-events." + token(stream) }

// eventStream opens the stream of the events, and makes it if it does not exist.
func (s *Store) eventStream(ctx context.Context) (jetstream.Stream, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e := &s.events
	e.mu.Lock()
	stream := e.stream
	e.mu.Unlock()
	if stream != nil {
		return stream, nil
	}
	stream, err := s.openStream(ctx, jetstream.StreamConfig{
		Name: s.names.eventStream(), Subjects: []string{s.names.eventStream() + ".*"}, MaxAge: s.cfg.EventTTL,
	})
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stream = stream
	return stream, nil
}

// AppendEvents implements store.Events.
func (s *Store) AppendEvents(ctx context.Context, list ...store.EventBatch) (refused []string, err error) {
	stream, err := s.eventStream(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		no, err := s.appendBatch(ctx, stream, &list[i])
		if err != nil {
			return refused, fmt.Errorf("natsstore: events of %.80q: %w", list[i].Stream, err)
		}
		if no {
			refused = append(refused, list[i].Stream)
		}
	}
	return refused, nil
}

// appendBatch adds a batch after the last one, again if another process was first. A batch that landed without an answer is found then.
func (s *Store) appendBatch(ctx context.Context, stream jetstream.Stream, b *store.EventBatch) (refused bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		refused, err = s.tryBatch(ctx, stream, b)
		if err == nil || !errors.Is(err, errStale) && !transient(err) {
			return refused, err
		}
		if late := pause(ctx, n); late != nil {
			return false, errors.Join(late, err)
		}
	}
}

func (s *Store) tryBatch(ctx context.Context, stream jetstream.Stream, b *store.EventBatch) (refused bool, err error) {
	subject := s.names.events(b.Stream)
	last, seq, err := s.lastBatch(ctx, stream, subject)
	if err != nil {
		return false, err
	}
	add, refused := b.Follows(last)
	if !add {
		return refused, nil
	}
	data, err := encode(&eventRecord{Fence: b.Fence, First: b.First, Last: b.Last, At: b.At.UnixNano(), Data: b.Data})
	if err != nil {
		return false, err
	}
	if _, err = s.request(ctx, expecting(subject, data, seq)); err != nil || b.Keep == 0 {
		return false, err
	}
	return false, s.dropBatches(ctx, stream, subject, func(old store.EventBatch) bool { return old.Last < b.Keep })
}

// lastBatch reads the last batch of a subject and its sequence, a zero one if there is none.
func (s *Store) lastBatch(ctx context.Context, stream jetstream.Stream, subject string) (b store.EventBatch, seq uint64, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		msg, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err == nil {
			seq = msg.Sequence
			b, err = batchOf(msg)
		}
		return err
	})
	return b, seq, err
}

func batchOf(msg *jetstream.RawStreamMsg) (store.EventBatch, error) {
	var r eventRecord
	err := decode(msg.Data, &r)
	return store.EventBatch{Fence: r.Fence, First: r.First, Last: r.Last, At: time.Unix(0, r.At).UTC(), Data: r.Data}, err
}

// PurgeEvents implements store.Events.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	stream, err := s.eventStream(ctx)
	if err != nil {
		return err
	}
	subjects, err := s.subjects(ctx, stream, s.names.eventStream()+".*")
	for _, subject := range subjects {
		if err == nil {
			err = s.dropBatches(ctx, stream, subject, func(b store.EventBatch) bool { return b.At.Before(before) })
		}
	}
	if err != nil {
		return fmt.Errorf("natsstore: purge events: %w", err)
	}
	return nil
}

// DropEvents implements store.Events.
func (s *Store) DropEvents(ctx context.Context, streams ...string) error {
	stream, err := s.eventStream(ctx)
	if err != nil {
		return err
	}
	for _, name := range streams {
		err := s.ask(ctx, func(ctx context.Context) error {
			return stream.Purge(ctx, jetstream.WithPurgeSubject(s.names.events(name)))
		})
		if err != nil {
			return fmt.Errorf("natsstore: events of %.80q: %w", name, err)
		}
	}
	return nil
}
