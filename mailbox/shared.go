package mailbox

import "github.com/mortise-dev/mortise/store"

// shared is what a stream has of the log that other processes read. It is guarded by the stream's lock.
type shared struct {
	pump     *pump // nil if no other process can read it
	dispatch string
	fence    uint64
	// sent is the number of the last event that the log has, or that was given up.
	sent uint64
	// trying is a batch of which it is not known whether it was added.
	trying *store.EventBatch
	// kept are the batches in the log, of events many and bytes large.
	kept          []keptBatch
	events, bytes int
	// waiting are about the bytes of the events that are not in the log yet.
	waiting int
}

type keptBatch struct {
	first         uint64
	events, bytes int
}

// mark notes that the stream has something to share.
func (h *shared) mark(s *Stream) {
	if h.pump == nil {
		return
	}
	h.pump.mark(s)
	if 2*(s.last-max(h.sent, s.dropped)) > uint64(s.keep.events) || 2*h.waiting > s.keep.bytes { //nolint:gosec // a size
		select {
		case h.pump.kick <- struct{}{}: // or it would be dropped before it is shared
		default:
		}
	}
}

// batch is what is to be added to the log next, or nothing.
func (s *Stream) batch(most, mostBytes int) (*store.EventBatch, error) {
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
	h.trying = &store.EventBatch{
		Stream: h.dispatch, Fence: h.fence, First: list[0].Seq, Last: list[len(list)-1].Seq, Data: data,
	}
	h.trying.Keep = h.keep(keptBatch{first: list[0].Seq, events: len(list), bytes: len(data)}, most, mostBytes)
	return h.trying, nil
}

// unsent reports whether there are events that are not in a batch yet.
func (s *Stream) unsent() bool {
	n := s.sharable()
	return n > 0 && s.ring.nth(n-1).Seq > s.shared.sent
}

// sharable is how many of the kept events are for other processes, too: all but EventMoved, which is the last one.
func (s *Stream) sharable() int {
	if s.moved {
		return s.ring.n - 1
	}
	return s.ring.n
}

// pending are the next events to share, without a gap in their numbers.
func (s *Stream) pending() (list []Event) {
	size := 0
	for n := s.ring.place(max(s.shared.sent, s.dropped)); n < s.sharable() && len(list) < batchEvents; n++ {
		e := s.ring.nth(n).bounded()
		size += len(e.Data) + len(e.Type)
		if len(list) > 0 && (e.Seq != list[len(list)-1].Seq+1 || size > batchBytes) {
			break
		}
		list = append(list, e)
	}
	return list
}

// keep counts a batch, and is the number below which others are too many; 0 if none are.
func (h *shared) keep(b keptBatch, most, mostBytes int) uint64 {
	h.kept = append(h.kept, b)
	h.events, h.bytes = h.events+b.events, h.bytes+b.bytes
	cut := 0
	for cut < len(h.kept)-1 && (h.events > most || h.bytes > mostBytes) {
		h.events, h.bytes = h.events-h.kept[cut].events, h.bytes-h.kept[cut].bytes
		cut++
	}
	h.kept = append(h.kept[:0:0], h.kept[cut:]...)
	if cut == 0 {
		return 0
	}
	return h.kept[0].first
}

// added notes that a batch is in the log, or never will be.
func (s *Stream) added(b *store.EventBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared.trying, s.shared.sent, s.shared.waiting = nil, b.Last, s.ring.sizeAfter(b.Last)
}

// left reports whether there is more to share.
func (s *Stream) left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared.trying != nil || s.unsent()
}
