package natsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/store"
)

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	if err := context.Cause(ctx); err != nil {
		return store.Snapshot{}, err
	}
	out, err := s.read(ctx, thread, q)
	if err != nil {
		return store.Snapshot{}, fmt.Errorf("natsstore: thread %.80q: %w", thread, redact(s.cfg.URL, err))
	}
	return out, nil
}

// read reads again when entries were moved meanwhile.
func (s *Store) read(ctx context.Context, thread string, q store.Query) (out store.Snapshot, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		if err := s.sure(ctx, thread); err != nil {
			return out, err
		}
		var list []entry
		if err := s.view(func(m *mirror) { out, list = m.state.Read(thread, q) }); err != nil {
			return out, err
		}
		data, err := s.entries(ctx, list)
		for i := range data {
			out.Entries[i].Data = bytes.Clone(data[i])
		}
		if !errors.Is(err, errGone) {
			return out, err
		}
		if late := pause(ctx, n); late != nil {
			return out, errors.Join(late, err)
		}
	}
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, q store.Scan) (out []store.Ref, err error) {
	if err := s.current(ctx); err != nil {
		return nil, err
	}
	err = s.view(func(m *mirror) { out = m.state.Scan(q) })
	return out, err
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, index string) (out map[string]int, err error) {
	if err := s.current(ctx); err != nil {
		return nil, err
	}
	err = s.view(func(m *mirror) { out = m.state.Count(index) })
	return out, err
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	return s.mirror.hub.Watch(ctx, topic)
}
