package mailbox

import "github.com/mortise-dev/mortise/store"

// shared is what a stream has of the log that other processes read. It is guarded by the stream's lock.
type shared struct {
	pump     *pump // nil if no other process can read it
	dispatch string
	fence    uint64
	// sent is the number of the last event that the log has, or that was given up, trimmed the one up to which the log may drop them.
	sent, trimmed uint64
	// trying is a batch of which it is not known whether it was added.
	trying *store.EventBatch
	// waiting are about the bytes of the events that are not in the log yet.
	waiting int
}

// mark notes that the stream has something to share.
func (h *shared) mark(s *Stream) {
	if h.pump == nil {
		return
	}
	h.pump.mark(s)
	if 2*(s.last-max(h.sent, s.dropped)) > uint64(s.bounds.events) || 2*h.waiting > s.bounds.bytes { //nolint:gosec // a size
		select {
		case h.pump.kick <- struct{}{}: // or it would be dropped before it is shared
		default:
		}
	}
}

// batch is what is to be added to the log next, or nothing. With it the log drops what the stream does not keep any more.
func (s *Stream) batch() (*store.EventBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.shared
	if h.trying != nil || !s.unsent() {
		return h.trying, nil
	}
	list := s.pending()
	data, err := encodeEvents(list)
	if err != nil {
		return nil, err
	}
	h.trying = &store.EventBatch{Stream: h.dispatch, Fence: h.fence, First: list[0].Seq, Last: list[len(list)-1].Seq, Data: data}
	if s.dropped > h.trimmed {
		h.trimmed, h.trying.Keep = s.dropped, s.dropped+1
	}
	return h.trying, nil
}

// unsent reports whether there are events that are not in a batch yet.
func (s *Stream) unsent() bool {
	list := s.sharable()
	return len(list) > 0 && list[len(list)-1].Seq > s.shared.sent
}

// sharable are the kept events that are for other processes, too: all but EventMoved, which is the last one.
func (s *Stream) sharable() []Event {
	if s.moved {
		return s.events[:len(s.events)-1]
	}
	return s.events
}

// pending are the next events to share, without a gap in their numbers.
func (s *Stream) pending() (list []Event) {
	size := 0
	for _, e := range s.sharable()[s.place(max(s.shared.sent, s.dropped)):] {
		e = e.bounded()
		size += e.size()
		if len(list) == batchEvents || len(list) > 0 && (e.Seq != list[len(list)-1].Seq+1 || size > batchBytes) {
			break
		}
		list = append(list, e)
	}
	return list
}

// added notes that a batch is in the log, or never will be.
func (s *Stream) added(b *store.EventBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared.trying, s.shared.sent, s.shared.waiting = nil, b.Last, s.sizeAfter(b.Last)
}

// left reports whether there is more to share.
func (s *Stream) left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared.trying != nil || s.unsent()
}
