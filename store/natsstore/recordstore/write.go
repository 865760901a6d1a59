package recordstore

import (
	"context"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/record"
)

// sizeHeader has how many bytes a record has, with the message that has it.
const sizeHeader = "Mortise-Size"

// run is one that this handle has started and that has not ended. Its lock is held while a line is written,
// so that they come in order.
type run struct {
	mu      sync.Mutex
	size    int64
	dropped int
}

// Start implements record.Store.
func (s *Store) Start(b record.Start) error {
	id := b.Run.RunID
	if err := record.CheckRun(id); err != nil {
		return err
	}
	b.Schema, b.Source = record.Schema, s.cfg.Source
	return wrap(id, s.call(func(ctx context.Context) error {
		r := s.get(id)
		if r == nil {
			size, err := s.size(ctx, id)
			if err != nil {
				return err
			}
			r = &run{size: size}
		}
		err := s.write(ctx, id, r, record.Line{Start: &b}, s.cfg.RunBytes+record.EndRoom)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && !s.closed && s.started[id] == nil {
			s.started[id] = r
		}
		return err
	}))
}

// get finds a run that this handle has started.
func (s *Store) get(id string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[id]
}

// size reads how many bytes a record has, for certain: what is written next is counted from there.
func (s *Store) size(ctx context.Context, id string) (int64, error) {
	if err := s.sure(ctx); err != nil {
		return 0, err
	}
	h, found, err := s.stream.LastHeader(ctx, s.names.record(id))
	if err != nil || !found {
		return 0, err
	}
	n, err := strconv.ParseInt(h.Get(sizeHeader), 10, 64)
	if err != nil {
		return 0, errDamaged
	}
	return n, nil
}

// Add implements record.Store.
func (s *Store) Add(id string, e record.Entry) error {
	r := s.get(id)
	if r == nil {
		return nil
	}
	return wrap(id, s.call(func(ctx context.Context) error {
		return s.write(ctx, id, r, record.Line{Entry: &e}, s.cfg.RunBytes)
	}))
}

// End implements record.Store.
func (s *Store) End(id string, e record.End) error {
	s.mu.Lock()
	r := s.started[id]
	delete(s.started, id)
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	return wrap(id, s.call(func(ctx context.Context) error {
		r.mu.Lock()
		e.Dropped = r.dropped
		r.mu.Unlock()
		return s.write(ctx, id, r, record.Line{End: &e}, s.cfg.RunBytes+record.EndRoom)
	}))
}

// write adds a line, unless it is too long or the record would be larger than limit.
func (s *Store) write(ctx context.Context, id string, r *run, l record.Line, limit int64) error {
	data, err := l.Encode()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.size + int64(len(data))
	if len(data) > record.MaxLine || size > limit {
		r.dropped++
		return nil
	}
	msg := &nats.Msg{Subject: s.names.record(id), Data: data, Header: nats.Header{}}
	msg.Header.Set(sizeHeader, strconv.FormatInt(size, 10))
	if _, err := s.stream.Send(ctx, msg, s.names.piece(id)); err != nil {
		return err
	}
	r.size = size
	return nil
}
