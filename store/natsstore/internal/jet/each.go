package jet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Each reads all records of a subject, which may have wildcards, in the order in which they were written: those that are there
// when it is called, and maybe later ones.
func (s *Stream) Each(ctx context.Context, subject string, each func(Record) error) error {
	seen, since := uint64(0), time.Now()
	for n := 0; ; n++ {
		last, found, err := s.lastSeq(ctx, subject)
		if err != nil || !found || last <= seen {
			return err
		}
		before := seen
		err = s.stretch(ctx, subject, &seen, last, each)
		if err == nil && seen >= last || err != nil && !Transient(err) && !errors.Is(err, errCut) {
			return err
		}
		if seen > before { // it may take its time while it gets on
			n, since = 0, time.Now()
		}
		if time.Since(since) > s.link.Patience {
			return errors.Join(ErrPatience, err)
		}
		if late := Pause(ctx, n); late != nil {
			return errors.Join(late, err)
		}
	}
}

// lastSeq asks the leader for the number of the latest record.
func (s *Stream) lastSeq(ctx context.Context, subject string) (seq uint64, found bool, err error) {
	msg, err := s.lastMessage(ctx, subject)
	if err != nil || msg == nil {
		return 0, false, err
	}
	return msg.Sequence, true, nil
}

// stretch reads behind seen, and sets it, up to the number last or until there is nothing more.
func (s *Stream) stretch(ctx context.Context, subject string, seen *uint64, last uint64, each func(Record) error) error {
	return s.consume(ctx, jetstream.ConsumerConfig{
		FilterSubject: subject, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: *seen + 1,
	}, func(msg jetstream.Msg, m *jetstream.MsgMetadata) (bool, error) {
		if err := s.deliver(ctx, msg, m, each); err != nil {
			return false, err
		}
		*seen = m.Sequence.Stream
		return *seen < last, nil
	})
}

// deliver hands over one message.
func (s *Stream) deliver(ctx context.Context, msg jetstream.Msg, m *jetstream.MsgMetadata, each func(Record) error) (err error) {
	r := Record{Ref: Ref{Seq: m.Sequence.Stream}, Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data(), At: m.Timestamp}
	if r.Parts, err = Parts(msg.Headers()); err != nil {
		return err
	}
	err = s.Ask(ctx, func(ctx context.Context) error {
		data, err := s.pieces(ctx, r)
		if err == nil {
			r.Data = data
		}
		return err
	})
	if errors.Is(err, ErrGone) {
		return s.dropped(ctx, r.Seq)
	}
	if err != nil {
		return err
	}
	return each(r)
}

// dropped says that a record whose pieces are missing was dropped meanwhile, or else that it is damaged.
func (s *Stream) dropped(ctx context.Context, seq uint64) error {
	return s.Ask(ctx, func(ctx context.Context) error {
		_, err := s.GetMsg(ctx, seq)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil
		case err != nil:
			return fmt.Errorf("natsstore: read: %w", err)
		}
		return fmt.Errorf("natsstore: record %d is damaged: a piece of it is missing", seq)
	})
}
