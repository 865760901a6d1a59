package natsstore

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// purge deletes the messages of a subject before a sequence.
type purge struct {
	subject string
	below   uint64
}

// discard deletes what an operation of this store made unnecessary, in the background. If that fails, it stays until the next time:
// messages that nothing refers to do no harm. The caller holds the lock of the mirror.
func (s *Store) discard(m *message, seq uint64, old leftover) {
	var list []purge
	for _, p := range old.places {
		list = append(list, purge{s.names.place(p), seq})
	}
	switch m.Kind {
	case kindGone:
		list = append(list, purge{s.names.logs(m.Thread), seq}, purge{s.names.pieces(m.Thread), seq})
	case kindSnapshot:
		list = append(list, purge{s.names.pieces(m.Thread), seq - m.Back})
	case kindOperation:
		for name, below := range old.chunks {
			list = append(list, purge{s.names.chunks(m.Thread, name), below})
		}
	}
	if len(list) > 0 {
		s.work(func(ctx context.Context) { s.purge(ctx, list) })
	}
}

func (s *Store) purge(ctx context.Context, list []purge) {
	for _, p := range list {
		err := s.ask(ctx, func(ctx context.Context) error {
			return s.stream.Purge(ctx, jetstream.WithPurgeSubject(p.subject), jetstream.WithPurgeSequence(p.below))
		})
		if err != nil {
			s.cfg.Logger.DebugContext(ctx, "natsstore_not_purged", "stream", s.cfg.Stream, "error", err)
			return
		}
	}
}
