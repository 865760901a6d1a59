package outboxstore

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// load reads all logs, and drops what of them no longer counts. It makes sure that they are the latest: from then on the outbox answers
// from memory, and delivers by that.
func (s *Store) load(ctx context.Context) error {
	if err := s.stream.SureEmpty(ctx, s.names.quorum()); err != nil {
		return err
	}
	first := map[string]uint64{}
	err := s.stream.Each(ctx, s.names.logs(), func(r jet.Record) error {
		m, err := decode(r.Data)
		if err != nil {
			return fmt.Errorf("message %d: %w", r.Seq, err)
		}
		name := string(m.Thread)
		if r.Subject != s.names.log(name) {
			return fmt.Errorf("message %d is not one of thread %.80q: it was not written by an outbox; delete it", r.Seq, name)
		}
		t := s.threads[name]
		if t == nil {
			t = newThread(name)
			s.threads[name], first[name] = t, r.Seq
		}
		if !t.follows(&m) {
			return s.gap(name, r.Seq)
		}
		s.advance(t, &m, r.Ref, len(r.Data))
		return nil
	})
	if err != nil {
		return err
	}
	for name, t := range s.threads {
		if t.state.empty() || first[name] < t.base {
			s.drop(ctx, t)
		}
		if t.last == 0 {
			delete(s.threads, name)
		}
	}
	return nil
}
