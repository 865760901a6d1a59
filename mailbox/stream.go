package mailbox

import (
	"context"
	"errors"
	"sync"
)

// ErrGap is a place in a stream whose event is not kept any more.
var ErrGap = errors.New("events were dropped")

// ErrEnd is the end of a stream.
var ErrEnd = errors.New("the stream has ended")

// Event is one event of a dispatch.
type Event struct {
	// Seq counts the events of the dispatch in this process from 1, over all its attempts.
	Seq  uint64
	Type string
	Data []byte
}

// Events that the mailbox itself sends.
const (
	// EventFailed comes when an execution failed; Data is the error. A retry may follow.
	EventFailed = "mailbox_failed"
	// EventSettled comes last: the dispatch is terminal. Data is its status.
	EventSettled = "mailbox_settled"
	// EventMoved comes last when another process goes on with the dispatch. Data is its owner,
	// if that is known.
	EventMoved = "mailbox_moved"
)

// Stream keeps the last events of a dispatch for whoever reads them, from whatever place. Who
// writes never waits. It is safe for concurrent use.
type Stream struct {
	mu    sync.Mutex
	ring  []Event
	size  int
	last  uint64
	ended bool
	more  chan struct{}
	over  chan struct{}
}

func newStream(size int) *Stream {
	return &Stream{size: size, more: make(chan struct{}), over: make(chan struct{})}
}

// Next returns the first event after seq, waiting for it if it has not come. It is
// [ErrGap] when that one was dropped: start again from what [Stream.First] says; and [ErrEnd]
// when there are no more.
func (s *Stream) Next(ctx context.Context, seq uint64) (Event, error) {
	for {
		e, more, err := s.after(seq)
		if more == nil {
			return e, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

func (s *Stream) after(seq uint64) (Event, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case seq < s.last && seq+uint64(len(s.ring)) < s.last:
		return Event{}, nil, ErrGap
	case seq < s.last:
		return s.ring[seq%uint64(s.size)], nil, nil
	case s.ended:
		return Event{}, nil, ErrEnd
	default:
		return Event{}, s.more, nil
	}
}

// First is the place before the oldest event that is kept.
func (s *Stream) First() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last - uint64(len(s.ring))
}

// send appends an event.
func (s *Stream) send(kind string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(kind, data)
}

// add appends an event. The caller holds the lock.
func (s *Stream) add(kind string, data []byte) {
	if s.ended {
		return
	}
	e := Event{Seq: s.last + 1, Type: kind, Data: data}
	if len(s.ring) < s.size {
		s.ring = append(s.ring, e)
	} else {
		s.ring[s.last%uint64(s.size)] = e
	}
	s.last++
	s.wake()
}

// finish appends the last event. The first one to do so counts.
func (s *Stream) finish(kind string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.add(kind, data)
	s.ended = true
	s.wake()
	close(s.over)
}

func (s *Stream) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *Stream) wake() {
	close(s.more)
	s.more = make(chan struct{})
}
