package mailbox

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// streams are those of the dispatches that this process executes, or has executed
// a while ago.
type streams struct {
	// open finds all, by dispatch; kept are those that have ended, oldest first.
	open map[string]*Stream
	kept []keptStream
	// most are how many of these, with how many bytes together.
	most bounds
}

type keptStream struct {
	dispatch string
	stream   *Stream
	bytes    int
	until    time.Time
}

// take is the stream of a dispatch that is to be executed: the one of the attempts
// before, or a new one.
func (s *streams) take(k queue.State, most bounds, p *pump) *Stream {
	id := k.Dispatch.ID
	stream := s.open[id]
	if stream == nil || stream.isEnded() {
		stream = newStream(most)
		stream.shared.pump, stream.shared.dispatch = p, id
		s.open[id] = stream
	}
	stream.begins(k.Dispatch.Fence, k.First)
	return stream
}

// ended returns the stream of a dispatch that is terminal, unless it has ended already. A stream that had the dispatch's latest claim is
// its own: readers who attach late still find it, and older ones are dropped. The events of another one are not all: another process had
// the dispatch afterwards.
func (s *streams) ended(d Dispatch, now time.Time, ttl time.Duration) (stream *Stream, own bool) {
	stream = s.open[d.ID]
	if stream == nil || stream.isEnded() || stream.claim() > d.Fence {
		return nil, false // a stream with a later claim is that of a dispatch that was queued again
	}
	if stream.claim() < d.Fence {
		delete(s.open, d.ID)
		return stream, false
	}
	s.kept = append(s.kept, keptStream{dispatch: d.ID, stream: stream, bytes: stream.size(), until: now.Add(ttl)})
	s.forget(now)
	return stream, true
}

func (s *streams) forget(now time.Time) {
	bytes := 0
	for _, k := range s.kept {
		bytes += k.bytes
	}
	n := 0
	for n < len(s.kept) && (len(s.kept)-n > s.most.events || now.After(s.kept[n].until) || bytes > s.most.bytes) {
		k := s.kept[n]
		if s.open[k.dispatch] == k.stream {
			delete(s.open, k.dispatch)
		}
		bytes -= k.bytes
		n++
	}
	s.kept = append([]keptStream(nil), s.kept[n:]...)
}

// Events returns the events of a dispatch that this process executes, or has executed
// not long ago (Config.Events.StreamTTL). Read it from any sequence number on, as often as you like. [Mailbox.Attach] has
// also those of other processes. Messages of a run are in its thread's log.
func (m *Mailbox) Events(dispatch string) (*Stream, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams.forget(m.queue.Now())
	s, ok := m.streams.open[dispatch]
	return s, ok
}

// Await waits until a dispatch is terminal, in whatever process, and returns it as it
// is then.
func (m *Mailbox) Await(ctx context.Context, dispatch string) (Dispatch, error) {
	for {
		d, found, err := m.queue.Dispatch(ctx, dispatch)
		switch {
		case err != nil:
			return d, err
		case !found:
			return d, wrap("dispatch", dispatch, ErrNotFound)
		case d.Status.Terminal():
			return d, nil
		}
		if err := m.pauseFor(ctx, dispatch); err != nil {
			return d, err
		}
	}
}

// pauseFor waits for the end of a stream of this process, or a little while.
func (m *Mailbox) pauseFor(ctx context.Context, dispatch string) error {
	var over <-chan struct{}
	if s, ok := m.Events(dispatch); ok && !s.isEnded() {
		over = s.over
	}
	timer := time.NewTimer(m.cfg.Poll)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// follow ends the streams of dispatches that left this process without an end: they were settled
// by another one, or it continues with them.
func (m *Mailbox) follow(ctx context.Context) {
	for id, s := range m.idle() {
		d, found, err := m.queue.Dispatch(ctx, id)
		switch {
		case err != nil: // at the next poll; the others may be well
		case !found:
			s.finish(EventMoved, nil)
			m.forgetStream(id, s)
		case d.Status.Terminal():
			m.settled(d)
		case d.Status == Claimed && d.Owner != m.cfg.Owner:
			s.finish(EventMoved, []byte(d.Owner))
			m.forgetStream(id, s)
		}
	}
}

func (m *Mailbox) forgetStream(dispatch string, s *Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams.open[dispatch] == s {
		delete(m.streams.open, dispatch)
	}
}

// idle are the streams that have not ended, of dispatches that are not executed here.
func (m *Mailbox) idle() map[string]*Stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams.forget(m.queue.Now())
	busy := make(map[string]bool, len(m.running))
	for _, x := range m.running {
		busy[x.hold.Dispatch] = true
	}
	out := map[string]*Stream{}
	for id, s := range m.streams.open {
		if !busy[id] && !s.isEnded() {
			out[id] = s
		}
	}
	return out
}

// endStreams ends what is left when the Mailbox closes.
func (m *Mailbox) endStreams() {
	for id, s := range m.idle() {
		s.finish(EventMoved, nil)
		m.forgetStream(id, s)
	}
}
