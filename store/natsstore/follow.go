package natsstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// A consumer that is lost is noticed after two heartbeats.
	followHeartbeat = time.Second
	followExpiry    = 10 * time.Second
	// followIdle is when the servers delete a consumer that no process uses, followRenewal when a process makes another one.
	followIdle    = time.Minute
	followRenewal = time.Hour
)

// errCut is a consumer that missed a message.
var errCut = errors.New("the consumer missed a message")

// follow consumes the operations until ctx is done.
func (s *Store) follow(ctx context.Context) {
	for n := 0; ; n++ {
		before := s.progress()
		err := s.consume(ctx)
		if s.progress() > before {
			n = 0
		}
		if pause(ctx, n) != nil {
			return
		}
		if err == nil {
			continue
		}
		s.cfg.Logger.DebugContext(ctx, "natsstore_consumer_lost", "stream", s.cfg.Stream, "error", redact(s.cfg.URL, err))
		s.mirror.mu.Lock()
		s.mirror.doubt = true
		s.mirror.mu.Unlock()
	}
}

// consume receives operations in order, until something is wrong or a new consumer is due. A process that did not for so long that
// tombstones may have ended cannot know what was dropped.
func (s *Store) consume(ctx context.Context) error {
	base := ctx
	ctx, cancel := context.WithTimeout(ctx, followRenewal)
	defer cancel()
	interrupt := s.interrupt(ctx)
	now, err := s.sameStream(ctx)
	if err != nil {
		return err
	}
	if !s.synced.IsZero() && now.Sub(s.synced) > tombstoneTTL/2 {
		s.mirror.fail(fmt.Errorf("no operations of stream %q arrived since %v: restart the program", s.cfg.Stream, s.synced))
	}
	once, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	consumer, err := s.stream.CreateConsumer(once, jetstream.ConsumerConfig{
		FilterSubject: s.names.threads(), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.progress() + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: followIdle,
	})
	if err != nil {
		return err
	}
	list, err := consumer.Messages(
		jetstream.PullExpiry(followExpiry), jetstream.PullHeartbeat(followHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, list.Stop)
	defer stop()
	defer list.Stop()
	interrupt(list.Stop)
	if consumer.CachedInfo().NumPending == 0 {
		s.settled(now)
	}
	for next := uint64(1); ; next++ {
		msg, err := list.Next()
		if ctx.Err() != nil {
			return nil // a new consumer is due, or the store is closed
		}
		if err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil || meta.Sequence.Consumer != next {
			return errors.Join(errCut, err)
		}
		s.receive(base, msg, meta.Sequence.Stream)
		if meta.NumPending == 0 {
			s.settled(now)
		}
	}
}

// interrupt returns what ends a consumer when there is a new connection, which may have lost messages, or when messages are late.
func (s *Store) interrupt(ctx context.Context) func(stop func()) {
	connected := s.nc.StatusChanged(nats.CONNECTED)
	context.AfterFunc(ctx, func() { s.nc.RemoveStatusListener(connected) })
	return func(stop func()) {
		s.following.Go(func() {
			defer stop()
			select {
			case <-connected:
			case <-s.late:
			case <-ctx.Done():
			}
		})
	}
}

// sameStream returns the time of the server. It fails if the stream was deleted, or made again: the state is of another one then.
func (s *Store) sameStream(ctx context.Context) (now time.Time, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return fmt.Errorf("stream %q was deleted: %w", s.cfg.Stream, err)
		case err != nil:
			return err
		case !info.Created.Equal(s.created):
			err = fmt.Errorf("stream %q was deleted and made again: restart the program", s.cfg.Stream)
			s.mirror.fail(err)
		}
		now = info.TimeStamp
		return err
	})
	return now, err
}
