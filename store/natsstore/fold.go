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
	for n, applied := 0, s.alone(); errors.Is(err, errPatience) || errors.Is(err, errGone) && !applied; n++ {
		applied = applied || errors.Is(err, errGone) && s.applied(ctx, seq)
		if pause(ctx, n) != nil {
			return
		}
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

// applied reports whether the leader has what it committed up to a message. On a busy machine a consumer of another server receives messages
// before the leader can answer with them.
func (s *Store) applied(ctx context.Context, seq uint64) bool {
	err := s.ask(ctx, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		if err == nil && info.State.LastSeq < seq {
			err = errPatience
		}
		return err
	})
	return !errors.Is(err, errPatience)
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
func (s *Store) fold(msg *message, seq uint64, damaged bool) {
	m := s.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.thread(msg.Thread)
	m.threads[msg.Thread] = t
	skipped := msg.Prev != t.seq
	var old leftover
	switch {
	case damaged:
		t.damaged = true
	case msg.Kind == kindSnapshot:
		m.load(msg.Thread, &msg.snap, seq, skipped)
		t.logged, t.base, t.ops = msg.size, msg.size, 1
	case msg.Kind == kindGone || msg.Fresh:
		if msg.Fresh {
			m.clear(msg.Thread)
		}
		old = m.apply(msg.Thread, &msg.op, seq)
		if msg.Kind == kindGone {
			m.clear(msg.Thread)
		}
		t.logged, t.ops = msg.size, 1
	case skipped || t.damaged:
		t.damaged = true
	default:
		old = m.apply(msg.Thread, &msg.op, seq)
		t.logged, t.ops = t.logged+msg.size, t.ops+1
	}
	t.seq, m.seen = seq, seq
	if msg.Writer == s.id {
		s.discard(msg, seq, old)
	}
	m.hub.Notify(msg.op.Notify...)
	if skipped { // operations were replaced by a snapshot before they arrived
		m.hub.NotifyAll()
	}
	m.wake()
}
