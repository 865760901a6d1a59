package natsstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
)

const (
	signalName = "signals"
	signalWait = 30 * time.Second
	maxPull    = 1000
)

// Pull implements mailbox.Signals. Signals are heads that are due some time and not claimed: a
// later head of a thread takes the place of an earlier one.
func (s *Store) Pull(ctx context.Context, limit int, wait time.Duration) (out []mailbox.Signal, err error) {
	consumer, err := s.signalConsumer(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if deaf(err) {
			s.forgetConsumer(consumer)
		}
	}()
	limit = max(min(limit, maxPull), 1)
	deadline := time.Now().Add(wait)
	for {
		batch, err := consumer.FetchNoWait(limit)
		if err == nil {
			out, err = s.collect(ctx, batch)
		}
		left := time.Until(deadline)
		if err != nil && !transient(err) || len(out) > 0 || left <= 0 || ctx.Err() != nil {
			return out, errors.Join(err, context.Cause(ctx))
		}
		if out, err = s.await(ctx, consumer, min(left, s.cfg.Wait)); err != nil || len(out) > 0 {
			return out, err
		}
	}
}

// await waits for one signal.
func (s *Store) await(ctx context.Context, consumer jetstream.Consumer, wait time.Duration) ([]mailbox.Signal, error) {
	once, cancel := context.WithTimeout(ctx, max(wait, time.Millisecond))
	defer cancel()
	batch, err := consumer.Fetch(1, jetstream.FetchContext(once))
	if err != nil {
		return nil, fmt.Errorf("natsstore: signals: %w", err)
	}
	out, err := s.collect(ctx, batch)
	if ctx.Err() == nil && (errors.Is(err, nats.ErrTimeout) || transient(err)) {
		err = nil
	}
	return out, err
}

// collect makes signals of heads. Those that ask for nothing are acknowledged.
func (s *Store) collect(ctx context.Context, batch jetstream.MessageBatch) (out []mailbox.Signal, err error) {
	for msg := range batch.Messages() {
		d, _, err := s.heard(ctx, msg)
		if err != nil || d.Head.DueAt.IsZero() || d.Head.Claim != nil {
			_ = msg.Ack() // it comes again if this is lost
			continue
		}
		x := mailbox.Signal{Thread: d.Head.Thread, Dispatch: d.Cause, Receipt: receipt{msg, s.cfg.Wait}}
		if meta, err := msg.Metadata(); err == nil {
			x.Deliveries = int(meta.NumDelivered) //nolint:gosec // a small number
		}
		out = append(out, x)
	}
	if err := batch.Error(); err != nil && ctx.Err() == nil {
		return out, fmt.Errorf("natsstore: signals: %w", err)
	}
	return out, nil
}

// signalConsumer makes the consumer that all processes share, when it is asked for.
func (s *Store) signalConsumer(ctx context.Context) (jetstream.Consumer, error) {
	s.consumer.Lock()
	defer s.consumer.Unlock()
	if s.signals != nil {
		return s.signals, nil
	}
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		s.signals, err = s.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: signalName, FilterSubject: s.names.heads(), AckPolicy: jetstream.AckExplicitPolicy, AckWait: signalWait, MaxAckPending: -1,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("natsstore: signals: %w", err)
	}
	return s.signals, nil
}

// deaf says whether an error is that of a consumer that may be gone: an operator may have deleted it.
func deaf(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound)
}

// forgetConsumer has the next Pull make the consumer that all processes share, if it is not there.
func (s *Store) forgetConsumer(c jetstream.Consumer) {
	s.consumer.Lock()
	defer s.consumer.Unlock()
	if s.signals == c {
		s.signals = nil
	}
}

// receipt answers a signal.
type receipt struct {
	msg  jetstream.Msg
	wait time.Duration
}

// Ack implements mailbox.Receipt.
func (r receipt) Ack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	if err := r.msg.DoubleAck(ctx); err != nil {
		return fmt.Errorf("natsstore: signal: %w", err)
	}
	return nil
}

// Nack implements mailbox.Receipt.
func (r receipt) Nack(_ context.Context, delay time.Duration) error {
	if err := r.msg.NakWithDelay(delay); err != nil {
		return fmt.Errorf("natsstore: signal: %w", err)
	}
	return nil
}
