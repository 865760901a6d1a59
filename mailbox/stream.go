package mailbox

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// stream keeps the last events of one execution, for readers of this process and until they are shared with others. A writer never waits.
type stream struct {
	pump     *pump // nil if no other process can read it
	dispatch string
	fence    uint64
	// most bounds what is kept.
	most Events

	mu sync.Mutex
	window
	shared
	// over is set when nothing more comes. more is closed when something has changed.
	over bool
	more chan struct{}
}

// window is what a stream keeps.
type window struct {
	// events are the last ones, with so many bytes.
	events []Event
	bytes  int
	// base is the number before the first event, dropped that of the last one that is not kept any more, last that of the newest.
	base, dropped, last uint64
}

// shared is what the log has of a stream.
type shared struct {
	// sent is the number of the last event that it has.
	sent uint64
	// trying is a batch of which it is not known whether the log has it, trimmed up to where the log may drop events.
	trying  *store.EventBatch
	trimmed uint64
}

// newStream makes the stream of a claim. Numbers of another claim than a dispatch's first one are above all those before.
func newStream(most Events, p *pump, dispatch string, fence uint64, first bool) *stream {
	s := &stream{pump: p, dispatch: dispatch, fence: fence, most: most, more: make(chan struct{})}
	if !first {
		s.base = fence << turnBits
	}
	s.dropped, s.last, s.sent, s.trimmed = s.base, s.base, s.base, s.base
	return s
}

// send appends an event.
func (s *stream) send(kind string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	e := Event{Seq: s.last + 1, Type: kind, Data: data}
	if e.size() > s.most.Bytes {
		e = e.skipped()
	}
	for len(s.events) > 0 && (len(s.events) >= s.most.Count || s.bytes+e.size() > s.most.Bytes) {
		s.bytes, s.dropped = s.bytes-s.events[0].size(), s.events[0].Seq
		s.events[0] = Event{} // its data may be large
		s.events = s.events[1:]
	}
	s.events, s.bytes, s.last = append(s.events, e), s.bytes+e.size(), e.Seq
	if s.pump != nil { // soon, if it would be dropped before it is shared
		unsent := s.after(s.sent)
		s.pump.mark(s, 2*len(unsent) > s.most.Count || 2*sizeOf(unsent) > s.most.Bytes)
	}
	s.changed()
}

// end ends the stream.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.changed()
}

// changed wakes readers. The caller holds the lock.
func (s *stream) changed() {
	close(s.more)
	s.more = make(chan struct{})
}

// Bounds of the streams of executions that have ended, which are kept for readers who come back: their events may be too large to be shared.
const (
	endedStreams = 256
	endedBytes   = 64 << 20
)

// ended are those streams, the latest one last.
type ended struct {
	list  []*stream
	bytes int
}

func (k *ended) add(s *stream) {
	k.list, k.bytes = append(k.list, s), k.bytes+s.behind(0)
	for len(k.list) > endedStreams || k.bytes > endedBytes {
		k.bytes -= k.list[0].behind(0)
		k.list = append([]*stream(nil), k.list[1:]...)
	}
}

// find returns the latest one of a dispatch, or nil.
func (k *ended) find(dispatch string) *stream {
	for _, s := range slices.Backward(k.list) {
		if s.dispatch == dispatch {
			return s
		}
	}
	return nil
}

// errOver is the end of a stream.
var errOver = errors.New("the execution is over")

// next returns the first event after the one with the number seq, waiting for it if it has not come.
func (s *stream) next(ctx context.Context, seq uint64) (Event, error) {
	for {
		e, more, err := s.at(seq)
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

// at is the first event after the one with the number seq, or why there is none, or what is closed when more comes.
func (s *stream) at(seq uint64) (e Event, more <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq < s.dropped && s.dropped > s.base {
		return e, nil, &GapError{Next: s.dropped}
	}
	if list := s.after(seq); len(list) > 0 {
		return list[0], nil, nil // a copy: the place in the list is cleared when the event is dropped
	}
	if s.over {
		return e, nil, errOver
	}
	return e, s.more, nil
}

// has reports whether the stream has what comes after a number, or will have it.
func (s *stream) has(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seq >= s.dropped && (seq < s.last || !s.over)
}

// after are the kept events after a number. The caller holds the lock.
func (s *stream) after(seq uint64) []Event {
	return s.events[sort.Search(len(s.events), func(i int) bool { return s.events[i].Seq > seq }):]
}

// behind counts the bytes of the kept events after a number.
func (s *stream) behind(seq uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sizeOf(s.after(seq))
}

func sizeOf(list []Event) (n int) {
	for _, e := range list {
		n += e.size()
	}
	return n
}

// batch is what is to be added to the log next, or nothing: events without a gap in their numbers. With it the log drops what the stream does
// not keep any more.
func (s *stream) batch() (*store.EventBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trying != nil {
		return s.trying, nil
	}
	var list []Event
	size := 0
	for _, e := range s.after(s.sent) {
		if len(e.Data) > maxEventData || len(e.Type) > maxEventType {
			e = e.skipped()
		}
		if size += e.size(); len(list) == batchEvents || len(list) > 0 && size > batchBytes {
			break
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, nil
	}
	data, err := encodeEvents(list)
	if err != nil {
		return nil, err
	}
	s.trying = &store.EventBatch{Stream: s.dispatch, Fence: s.fence, First: list[0].Seq, Last: list[len(list)-1].Seq, Data: data}
	if s.dropped > s.trimmed {
		s.trimmed, s.trying.Keep = s.dropped, s.dropped+1
	}
	return s.trying, nil
}

// added notes that the log has a batch, or never will.
func (s *stream) added(b *store.EventBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying, s.sent = nil, b.Last
}

// left reports whether there is more to share.
func (s *stream) left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trying != nil || len(s.after(s.sent)) > 0
}

// size is what an event counts for, in bytes.
func (e Event) size() int { return len(e.Type) + len(e.Data) }

// skipped is what replaces an event that is too large.
func (e Event) skipped() Event {
	kind := strings.ToValidUTF8(e.Type[:min(len(e.Type), maxEventType)], "")
	return Event{Seq: e.Seq, Type: EventSkipped, Data: []byte(kind)}
}
