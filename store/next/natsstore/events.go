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
	// tails are the last batches of streams, without their data, and their sequences.
	tails map[string]tail
}

type tail struct {
	store.EventBatch

	seq uint64
}

// maxTails is how many streams a process remembers.
const maxTails = 4096

func newEvents() events { return events{tails: map[string]tail{}} }

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
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
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

// appendBatch adds a batch after the last one, again if another process was first.
func (s *Store) appendBatch(ctx context.Context, stream jetstream.Stream, b *store.EventBatch) (refused bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		refused, err = s.tryBatch(ctx, stream, b)
		if err == nil {
			return refused, nil
		}
		s.events.forget(b.Stream)
		if !errors.Is(err, errStale) && !transient(err) { // a batch that landed without an answer is found
			return false, err
		}
		if late := pause(ctx, n); late != nil {
			return false, errors.Join(late, err)
		}
	}
}

func (s *Store) tryBatch(ctx context.Context, stream jetstream.Stream, b *store.EventBatch) (refused bool, err error) {
	last, known := s.events.tail(b.Stream)
	if !known {
		if last, err = s.lastBatch(ctx, stream, b.Stream); err != nil {
			return false, err
		}
	}
	add, refused := b.Follows(last.EventBatch)
	if !add && known { // another process may have dropped the stream
		s.events.forget(b.Stream)
		return s.tryBatch(ctx, stream, b)
	}
	if !add {
		return refused, nil
	}
	data, err := encode(&eventRecord{Fence: b.Fence, First: b.First, Last: b.Last, At: b.At.UnixNano(), Data: b.Data})
	if err != nil {
		return false, err
	}
	seq, err := s.request(ctx, expecting(s.names.events(b.Stream), data, last.seq))
	if err != nil {
		return false, err
	}
	next := tail{EventBatch: *b, seq: seq}
	next.Data = nil
	s.events.remember(b.Stream, next)
	if b.Keep > 0 {
		return false, s.drop(ctx, stream, s.names.events(b.Stream), func(old store.EventBatch) bool { return old.Last < b.Keep })
	}
	return false, nil
}

func (e *events) tail(name string) (t tail, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, known = e.tails[name]
	return t, known
}

func (e *events) remember(name string, t tail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.tails) >= maxTails {
		clear(e.tails)
	}
	e.tails[name] = t
}

func (e *events) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tails, name)
}

// lastBatch reads the last batch of a stream, a zero one if there is none.
func (s *Store) lastBatch(ctx context.Context, stream jetstream.Stream, name string) (t tail, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		msg, err := stream.GetLastMsgForSubject(ctx, s.names.events(name))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		t.seq = msg.Sequence
		t.EventBatch, err = batchOf(name, msg)
		return err
	})
	return t, err
}

func batchOf(name string, msg *jetstream.RawStreamMsg) (store.EventBatch, error) {
	var r eventRecord
	err := decode(msg.Data, &r)
	return store.EventBatch{Stream: name, Fence: r.Fence, First: r.First, Last: r.Last, At: time.Unix(0, r.At).UTC(), Data: r.Data}, err
}
