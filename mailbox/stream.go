package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
)

// ErrEnd is the end of a stream.
var ErrEnd = errors.New("the stream has ended")

// GapError is a place in a stream whose next event is not kept any more.
type GapError struct {
	// Next is the place before the next event that is kept.
	Next uint64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("mailbox: events were dropped; continue from %d", e.Next)
}

// Event is one event of a dispatch.
type Event struct {
	// Seq names the event within its dispatch, for all processes. It grows: by one, from 1, in what one process sends
	// without a break. When another one continues, the numbers continue far above, so that none of them was given before.
	Seq  uint64
	Type string
	Data []byte
}

// Events that the mailbox itself sends.
const (
	// EventFailed comes when an execution failed; Data is the error. A retry may follow.
	EventFailed = "mailbox_failed"
	// EventRefused comes when what a request asked for was refused, and its run stands as it was; Data is the error.
	EventRefused = "mailbox_refused"
	// EventSettled comes once, and last: the dispatch is terminal. Data is its status. Readers in several processes may see it under
	// different numbers.
	EventSettled = "mailbox_settled"
	// EventMoved ends the Stream of a process when another one continues the dispatch; a Feed continues there. Data is the owner of the other
	// process, if that is known.
	EventMoved = "mailbox_moved"
	// EventSkipped is in the place of an event that is too large to be shared between processes, or to be kept at all
	// (Config.Events.Bytes). Data is its type, or the beginning of that.
	EventSkipped = "mailbox_skipped"
)

// Stream keeps the last events of a dispatch for readers, from any number on. A
// writer never waits. It is safe for concurrent use.
type Stream struct {
	mu sync.Mutex
	// events are the last ones, with so many bytes.
	events []Event
	bytes  int
	// bounds limit how many events are kept, and how many bytes.
	bounds bounds
	// from is the number before the first event of this process, dropped that of the last one that is not kept any more, 0
	// if all are, and last that of the newest.
	from, dropped, last uint64
	ended, moved        bool
	more                chan struct{}
	over                chan struct{}
	shared              shared
}

// bounds limit the events of a stream that are kept.
type bounds struct{ events, bytes int }

func newStream(k bounds) *Stream {
	return &Stream{bounds: k, more: make(chan struct{}), over: make(chan struct{})}
}

// Next returns the first event after the one with the number seq, waiting for it if it has not come. It is
// [GapError] when that one was dropped; and [ErrEnd] when there are no more.
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
	case seq < s.dropped:
		return Event{}, nil, &GapError{Next: s.dropped}
	case seq < s.last && len(s.events) > 0:
		return s.events[s.place(seq)], nil, nil
	case s.ended:
		return Event{}, nil, ErrEnd
	default:
		return Event{}, s.more, nil
	}
}

// claim is the fence of the latest claim under which this process has sent events.
func (s *Stream) claim() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared.fence
}

// begins moves the numbers to those of a turn. What was sent by this process right before continues.
func (s *Stream) begins(fence uint64, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !first && fence != s.shared.fence+1 {
		s.last = turnBase(fence)
	}
	if len(s.events) == 0 {
		s.from, s.shared.sent = s.last, s.last
	}
	s.shared.fence = fence
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
	if e.size() > s.bounds.bytes {
		e = e.skipped()
	}
	for len(s.events) > 0 && (len(s.events) >= s.bounds.events || s.bytes+e.size() > s.bounds.bytes) {
		s.bytes, s.dropped = s.bytes-s.events[0].size(), s.events[0].Seq
		s.events[0] = Event{} // its data may be large
		s.events = s.events[1:]
	}
	s.events, s.bytes = append(s.events, e), s.bytes+e.size()
	s.shared.waiting += e.size()
	s.last = e.Seq
	s.shared.mark(s)
	s.wake()
}

// finish appends the last event. The first one to do so counts.
func (s *Stream) finish(kind string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.moved = kind == EventMoved
	s.add(kind, data)
	s.ended = true
	s.wake()
	close(s.over)
}

// size is how many bytes are kept.
func (s *Stream) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Behind is how many bytes of events are kept that come after the number seq.
func (s *Stream) Behind(seq uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sizeAfter(seq)
}

// size is what an event counts for, in bytes.
func (e Event) size() int { return len(e.Type) + len(e.Data) }

// place counts the kept events up to a number. The caller holds the lock.
func (s *Stream) place(seq uint64) int {
	return sort.Search(len(s.events), func(i int) bool { return s.events[i].Seq > seq })
}

// sizeAfter are the bytes of the kept events after a number. The caller holds the lock.
func (s *Stream) sizeAfter(seq uint64) (bytes int) {
	for _, e := range s.events[s.place(seq):] {
		bytes += e.size()
	}
	return bytes
}

func (s *Stream) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// knows reports whether this process has what comes after a number: EventMoved, its last event, is not what the dispatch's next one is.
func (s *Stream) knows(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seq >= s.from && seq >= s.dropped && (!s.moved || seq+1 < s.last)
}

func (s *Stream) wake() {
	close(s.more)
	s.more = make(chan struct{})
}
