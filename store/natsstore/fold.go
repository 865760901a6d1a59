package natsstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// receive folds a message of a thread into the state.
func (s *Store) receive(ctx context.Context, msg jetstream.Msg, seq uint64) {
	m, err := s.unpack(ctx, seq, msg.Data())
	for errors.Is(err, errPatience) && ctx.Err() == nil {
		m, err = s.unpack(ctx, seq, msg.Data())
	}
	if ctx.Err() != nil {
		return
	}
	if m == nil || s.names.thread(m.Thread) != msg.Subject() {
		err = fmt.Errorf("natsstore: stream %q: message %d was not written by this version of Mortise: %w", s.cfg.Stream, seq, err)
		s.cfg.Logger.ErrorContext(ctx, "natsstore_message_damaged", "stream", s.cfg.Stream, "sequence", seq, "error", err)
		s.mirror.fail(err)
		return
	}
	m.size = len(msg.Data()) + len(m.body)
	if err != nil && !errors.Is(err, errGone) {
		s.cfg.Logger.ErrorContext(ctx, "natsstore_message_damaged", "stream", s.cfg.Stream, "sequence", seq, "error", err)
	}
	s.fold(m, seq, err != nil)
}

// message is what an envelope has.
type message struct {
	envelope

	body []byte
	size int
	op   operation
	snap snapshot
}

// unpack decodes a message, and gets its body if that is elsewhere. A message with an error has no body.
func (s *Store) unpack(ctx context.Context, seq uint64, data []byte) (*message, error) {
	m := &message{}
	if err := decode(data, &m.envelope); err != nil {
		return nil, err
	}
	body := m.Body
	if m.Parts > maxMessages || m.Back >= seq {
		return nil, fmt.Errorf("natsstore: %d parts, the first one %d before message %d", m.Parts, m.Back, seq)
	}
	if m.Parts > 0 {
		var err error
		if m.body, err = s.blob(ctx, seq-m.Back, m.Parts); err != nil {
			return m, err
		}
		body = m.body
	}
	m.Body = nil
	switch m.Kind {
	case kindOperation, kindGone:
		return m, decode(body, &m.op)
	case kindSnapshot:
		return m, decode(body, &m.snap)
	}
	return nil, fmt.Errorf("natsstore: unknown kind %d", m.Kind)
}

// fold makes the changes of a message.
func (s *Store) fold(m *message, seq uint64, damaged bool) {
	s.mirror.mu.Lock()
	defer s.mirror.mu.Unlock()
	st := s.mirror.state
	t := st.thread(m.Thread)
	st.threads[m.Thread] = t
	skipped := m.Prev != t.seq
	var old leftover
	switch {
	case damaged:
		t.damaged = true
	case m.Kind == kindSnapshot:
		st.load(t, &m.snap, seq, skipped)
		t.logged, t.base, t.ops = m.size, m.size, 1
	case m.Kind == kindGone || m.Fresh:
		if m.Fresh {
			st.clear(t)
		}
		old = st.change(t, &m.op, seq)
		if m.Kind == kindGone {
			st.clear(t)
		}
		t.logged, t.ops = m.size, 1
	case skipped || t.damaged:
		t.damaged = true
	default:
		old = st.change(t, &m.op, seq)
		t.logged, t.ops = t.logged+m.size, t.ops+1
	}
	t.seq = seq
	if m.Writer == s.id {
		s.discard(m, seq, t, old)
	}
	s.mirror.seen = seq
	s.mirror.notify(m.op.Notify)
	if skipped {
		s.mirror.notifyAll()
	}
	s.mirror.wake()
}

// notify wakes those who watch a topic. The caller holds the lock.
func (m *mirror) notify(topics []string) {
	for _, topic := range topics {
		for c := range m.topics[topic] {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

// notifyAll wakes all who watch: operations were replaced by a snapshot before they arrived.
func (m *mirror) notifyAll() {
	for topic := range m.topics {
		m.notify([]string{topic})
	}
}
