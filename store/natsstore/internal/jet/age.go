package jet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Keep makes the servers keep records for so long at least, and says how long they do; 0 is for ever.
func (s *Stream) Keep(ctx context.Context, age time.Duration) (kept time.Duration, err error) {
	err = s.Ask(ctx, func(ctx context.Context) error {
		info, err := s.Info(ctx)
		if err != nil {
			return fmt.Errorf("natsstore: read: %w", err)
		}
		cfg := info.Config
		if kept = cfg.MaxAge; !shorter(kept, age) {
			return nil
		}
		cfg.MaxAge = age
		if _, err := s.link.JS.UpdateStream(ctx, cfg); err != nil {
			return fmt.Errorf("natsstore: stream %q: max_age stays %v, not %v: %w", cfg.Name, kept, age, err)
		}
		kept = age
		return nil
	})
	return kept, err
}

// DropBefore drops the records that were written before a time, by the clock of the servers.
func (s *Stream) DropBefore(ctx context.Context, before time.Time) error {
	return s.Ask(ctx, func(ctx context.Context) error {
		info, err := s.Info(ctx)
		if err != nil {
			return fmt.Errorf("natsstore: read: %w", err)
		}
		if info.State.Msgs == 0 || !info.State.FirstTime.Before(before) {
			return nil
		}
		from := info.State.LastSeq + 1
		if !info.State.LastTime.Before(before) {
			if from, err = s.firstSince(ctx, before); err != nil {
				return err
			}
		}
		if err := s.Purge(ctx, jetstream.WithPurgeSequence(from)); err != nil {
			return fmt.Errorf("natsstore: drop: %w", err)
		}
		return nil
	})
}

// firstSince is the number of the first record since a time. The server that is asked may be one that runs behind and has none.
func (s *Stream) firstSince(ctx context.Context, at time.Time) (seq uint64, err error) {
	err = s.consume(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &at, HeadersOnly: true,
	}, func(_ jetstream.Msg, m *jetstream.MsgMetadata) (bool, error) {
		seq = m.Sequence.Stream
		return false, nil
	})
	if errors.Is(err, errCut) || err == nil && seq == 0 {
		err = errors.Join(err, context.DeadlineExceeded) // another try may help
	}
	return seq, err
}
