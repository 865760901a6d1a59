package jet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Latest lists the latest record of each subject that the pattern fits, without their data, oldest first.
func (s *Stream) Latest(ctx context.Context, pattern string) ([]Record, error) {
	for n, since := 0, time.Now(); ; n++ {
		last, found, err := s.lastSeq(ctx, pattern)
		if err != nil || !found {
			return nil, err
		}
		all, err := s.latest(ctx, pattern, last)
		if err == nil {
			return all, nil
		}
		if !Transient(err) && !errors.Is(err, errCut) {
			return nil, err
		}
		if time.Since(since) > s.link.Patience {
			return nil, errors.Join(ErrPatience, err)
		}
		if late := Pause(ctx, n); late != nil {
			return nil, errors.Join(late, err)
		}
	}
}

// latest fails with errCut if the server that was asked did not know the record of the number last, which may also be gone.
func (s *Stream) latest(ctx context.Context, pattern string, last uint64) ([]Record, error) {
	all, seen := map[string]Record{}, uint64(0)
	err := s.consume(ctx, jetstream.ConsumerConfig{
		FilterSubject: pattern, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true,
	}, func(msg jetstream.Msg, m *jetstream.MsgMetadata) (bool, error) {
		seen = m.Sequence.Stream
		all[msg.Subject()] = Record{Ref: Ref{Seq: seen}, Subject: msg.Subject(), Header: msg.Headers(), At: m.Timestamp}
		return seen < last, nil
	})
	if err == nil && seen < last {
		err = errCut
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Record) int { return int(a.Seq) - int(b.Seq) }), err //nolint:gosec // it counts from 1
}

// Subjects lists the subjects that the pattern fits and that have records.
func (s *Stream) Subjects(ctx context.Context, pattern string) ([]string, error) {
	var out []string
	err := s.Ask(ctx, func(ctx context.Context) error {
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(pattern))
		if err != nil {
			return fmt.Errorf("natsstore: read: %w", err)
		}
		out = slices.Sorted(maps.Keys(info.State.Subjects))
		return nil
	})
	return out, err
}

// LastSubject is the subject of the latest record among those that the pattern fits.
func (s *Stream) LastSubject(ctx context.Context, pattern string) (subject string, found bool, err error) {
	msg, err := s.lastMessage(ctx, pattern)
	if err != nil || msg == nil {
		return "", false, err
	}
	return msg.Subject, true, nil
}

// LastHeader is the header of the latest record of a subject.
func (s *Stream) LastHeader(ctx context.Context, subject string) (h nats.Header, found bool, err error) {
	msg, err := s.lastMessage(ctx, subject)
	if err != nil || msg == nil {
		return nil, false, err
	}
	return msg.Header, true, nil
}

// LastMark is the latest record of a subject without its data, also one of which pieces are missing.
func (s *Stream) LastMark(ctx context.Context, subject string) (r Record, found bool, err error) {
	msg, err := s.lastMessage(ctx, subject)
	if err != nil || msg == nil {
		return Record{}, false, err
	}
	return Record{Ref: Ref{Seq: msg.Sequence}, Subject: msg.Subject, Header: msg.Header, At: msg.Time}, true, nil
}

// lastMessage is the first message of the latest record, without its pieces, or nil.
func (s *Stream) lastMessage(ctx context.Context, pattern string) (*jetstream.RawStreamMsg, error) {
	return look(ctx, s.link, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		msg, err := s.GetLastMsgForSubject(ctx, pattern)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, nil //nolint:nilnil // there is none
		case err != nil:
			return nil, fmt.Errorf("natsstore: read: %w", err)
		}
		return msg, nil
	})
}
