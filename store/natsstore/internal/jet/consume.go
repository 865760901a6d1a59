package jet

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// errCut is a consumer that ended before its time.
var errCut = errors.New("natsstore: reading was cut short")

// taker takes a message, and says whether it wants more.
type taker = func(jetstream.Msg, *jetstream.MsgMetadata) (bool, error)

// maxFetch is how many messages are on their way at once.
const maxFetch = 128

// consume hands messages to take while it wants more and there are any. It fails with errCut when it cannot tell whether all have
// come.
func (s *Stream) consume(ctx context.Context, cfg jetstream.ConsumerConfig, take taker) error {
	cfg.AckPolicy, cfg.MemoryStorage, cfg.Replicas, cfg.InactiveThreshold = jetstream.AckNonePolicy, true, 1, 2*s.link.Wait
	once, cancel := context.WithTimeout(ctx, s.link.Wait)
	consumer, err := s.CreateConsumer(once, cfg)
	cancel()
	if err != nil {
		return fmt.Errorf("natsstore: read: %w", err)
	}
	err = s.fetch(ctx, consumer, take)
	once, cancel = context.WithTimeout(ctx, s.link.Wait)
	defer cancel()
	if late := s.DeleteConsumer(once, consumer.CachedInfo().Name); late != nil {
		s.link.Logger.DebugContext(ctx, "natsstore_consumer_not_dropped", "error", late) // the server drops it, soon
	}
	return err
}

func (s *Stream) fetch(ctx context.Context, consumer jetstream.Consumer, take taker) error {
	f := fetching{rest: consumer.CachedInfo().NumPending, next: 1, more: true, take: take}
	for f.more && f.rest > 0 {
		once, cancel := context.WithTimeout(ctx, s.link.Wait)
		batch, err := consumer.Fetch(int(min(f.rest, maxFetch)), jetstream.FetchContext(once)) //nolint:gosec // it is small
		if err != nil {
			cancel()
			return fmt.Errorf("%w: %w", errCut, err)
		}
		before := f.next
		for msg := range batch.Messages() {
			f.hear(msg)
			if !f.more {
				cancel()
			}
		}
		cancel()
		if f.err == nil && f.next == before {
			f.err = errCut
		}
		if f.err != nil {
			return f.err
		}
	}
	return nil
}

// fetching is what is known while messages come.
type fetching struct {
	rest uint64 // how many there are
	next uint64 // which one comes next
	more bool   // whether it is wanted
	take taker
	err  error
}

func (f *fetching) hear(msg jetstream.Msg) {
	if !f.more {
		return
	}
	m, err := msg.Metadata()
	if err != nil || m.Sequence.Consumer != f.next {
		f.more, f.err = false, errors.Join(errCut, err)
		return
	}
	f.rest, f.next = m.NumPending, f.next+1
	if f.more, f.err = f.take(msg, m); f.err != nil {
		f.more = false
	}
}
