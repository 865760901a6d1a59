package sessionstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// Record implements compaction.Store.
func (s *Store) Record(e compaction.Event) error {
	data, err := json.Marshal(e)
	if err == nil && len(data) > jet.PieceSize {
		err = fmt.Errorf("an event has %d bytes, at most %d are kept", len(data), jet.PieceSize)
	}
	if err != nil {
		return wrap(e.Thread, err)
	}
	return wrap(e.Thread, s.call(func(ctx context.Context) error {
		_, err := s.stream.Send(ctx, &nats.Msg{Subject: s.names.events(e.Thread), Data: data}, nil)
		return err
	}))
}

// Events implements session.Store. They tell what was, and may run behind.
func (s *Store) Events(thread string) (list []compaction.Event, err error) {
	err = s.call(func(ctx context.Context) error {
		return s.stream.Each(ctx, s.names.events(thread), func(r jet.Record) error {
			var e compaction.Event
			if err := json.Unmarshal(r.Data, &e); err != nil {
				return fmt.Errorf("event %d is damaged: %w", r.Seq, err)
			}
			list = append(list, e)
			return nil
		})
	})
	if err != nil {
		return nil, wrap(thread, err)
	}
	return list[max(0, len(list)-session.MaxEvents):], nil
}
