package natsstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/internal/state"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

var (
	// errPatience is that Config.Patience is over.
	errPatience = errors.New("no server answered in time")
	// errGone is a message that was deleted while it was read.
	errGone = errors.New("a message is missing")
)

// sure returns when the state of a thread has all that was acknowledged before the call. On a single server the leader is asked. A
// leader of replicas may be one no longer and not know it, so these must accept a write on the condition that the state is the latest.
func (s *Store) sure(ctx context.Context, thread string) error {
	for n := 0; ; n++ {
		if !s.alone() {
			seq, err := s.local(thread)
			if err == nil {
				err = s.verify(ctx, thread, seq)
			}
			if err == nil || !errors.Is(err, errStale) {
				return err
			}
		}
		err := s.fetch(ctx, thread)
		if err == nil && s.alone() || err != nil && !errors.Is(err, errBehind) {
			return err
		}
		if late := pause(ctx, n); late != nil {
			return errors.Join(late, err)
		}
	}
}

// alone reports whether the stream is on one server.
func (s *Store) alone() bool { return s.stream.CachedInfo().Config.Replicas <= 1 }

// local is the sequence of a thread's latest message that was received. It fails while operations are missing.
func (s *Store) local(thread string) (seq uint64, err error) {
	failed := s.view(func(m *mirror) {
		if seq = m.thread(thread).seq; m.thread(thread).damaged {
			err = fmt.Errorf("%w: operations are missing", errStale)
		}
	})
	return seq, errors.Join(failed, err)
}

// verify fails with errStale unless the latest message of a thread has a sequence.
func (s *Store) verify(ctx context.Context, thread string, seq uint64) error {
	return s.ask(ctx, func(ctx context.Context) error {
		m := expecting(s.names.quorum(), nil, seq)
		m.Header.Set(expectOfHeader, s.names.thread(thread))
		m.Header.Set(nats.MsgRollup, nats.MsgRollupSubject)
		_, err := s.request(ctx, m)
		return err
	})
}

// fetch waits until the state of a thread has the latest message that the leader has.
func (s *Store) fetch(ctx context.Context, thread string) error {
	before := uint64(0)
	if err := s.view(func(m *mirror) { before = m.thread(thread).seq }); err != nil {
		return err
	}
	last, err := s.lastSeq(ctx, s.names.thread(thread))
	if err != nil {
		return err
	}
	if last < before {
		if known, err := s.receded(thread, before, last); known || err != nil {
			return err
		}
	}
	damaged := false
	err = s.await(ctx, func(m *mirror) bool {
		t := m.thread(thread)
		damaged = t.damaged
		return t.seq >= last && !damaged
	})
	if errors.Is(err, errBehind) && damaged {
		return fmt.Errorf("operations before message %d are missing from stream %q: restore it, "+
			"or delete the thread with: nats stream purge %s --subject %s",
			last, s.cfg.Stream, s.cfg.Stream, s.names.thread(thread))
	}
	return err
}

// receded handles a thread of which the leader has less than was received. It reports whether the state is known: the tombstone of a
// dropped thread ends by itself. A leader of replicas may lag.
func (s *Store) receded(thread string, before, last uint64) (known bool, err error) {
	m := s.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.thread(thread).seq > before:
		return true, nil
	case last == 0 && !m.state.Has(thread):
		delete(m.threads, thread)
		return true, nil
	case !s.alone():
		return false, nil
	}
	return false, fmt.Errorf("stream %q has lost operations of the thread: its latest message is %d, and %d was received before; "+
		"restart the program", s.cfg.Stream, last, before)
}

// lastSeq asks the leader for the sequence of the latest message of a subject, 0 if there is none.
func (s *Store) lastSeq(ctx context.Context, subject string) (seq uint64, err error) {
	msg, err := s.last(ctx, subject)
	if msg == nil {
		return 0, err
	}
	return msg.Sequence, err
}

// lastClaim asks the leader which thread took a place last.
func (s *Store) lastClaim(ctx context.Context, p state.Place) (seq uint64, thread string, err error) {
	msg, err := s.last(ctx, s.names.place(p))
	if msg == nil {
		return 0, "", err
	}
	var c claim
	err = decode(msg.Data, &c)
	return msg.Sequence, c.Thread, err
}

func (s *Store) last(ctx context.Context, subject string) (msg *jetstream.RawStreamMsg, err error) {
	err = s.ask(ctx, func(ctx context.Context) (err error) {
		msg, err = s.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		return err
	})
	return msg, err
}

// ask repeats a question while no server can answer.
func (s *Store) ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		once, stop := context.WithTimeout(ctx, s.cfg.Wait)
		err := question(once)
		stop()
		if err == nil || !transient(err) {
			return err
		}
		if late := pause(ctx, n); late != nil {
			return errors.Join(late, err)
		}
	}
}

// transient reports whether asking again may help.
func transient(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == http.StatusServiceUnavailable
	}
	for _, known := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrNoServers,
		jetstream.ErrNoStreamResponse, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

const maxDoublings = 8

// pause waits before the nth try, longer each time. It fails when ctx is done.
func pause(ctx context.Context, n int) error {
	d := time.Millisecond << min(n, maxDoublings)
	return wait.For(ctx, d/2+rand.N(d)) //nolint:gosec // not a secret
}
