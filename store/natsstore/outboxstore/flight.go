package outboxstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// flight is a batch being written. Whoever has the thread's turn flies it.
type flight struct {
	*Store

	t *thread
	b *batch
	// m is the message that is being written. tried says that it may be in the log.
	m     *message
	tried bool
}

// errAgain asks for another try.
var errAgain = errors.New("the log has changed meanwhile")

// fly writes the next batch of a thread. Its callers hear of it, also when one of them has gone.
func (s *Store) fly(ctx context.Context, t *thread) {
	s.mu.Lock()
	if len(t.queue) == 0 {
		s.mu.Unlock()
		return
	}
	f := &flight{Store: s, t: t, b: t.queue[0]}
	f.b.flying = true
	t.queue = t.queue[1:]
	s.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	f.b.err = f.write(ctx)
	close(f.b.done)
	if f.b.err == nil && f.m != nil && f.m.Reset && (f.m.Prev != 0 || t.state.empty()) {
		s.drop(ctx, t)
	}
}

// write tries until it is certain what came of it, or Patience is over.
func (f *flight) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.link.Patience, jet.ErrPatience)
	defer cancel()
	for n := 0; ; n++ {
		err := f.try(ctx, n)
		if err == nil {
			return nil
		}
		again := errors.Is(err, errAgain) || errors.Is(err, jet.ErrGone) || jet.Transient(err)
		if !again {
			f.giveUp()
			return err
		}
		if late := jet.Pause(ctx, n); late != nil {
			f.giveUp()
			return errors.Join(late, err)
		}
	}
}

// giveUp remembers a message that may be in the log all the same.
func (f *flight) giveUp() {
	if f.tried {
		f.t.unsure[f.m.ID] = true
		f.t.loose = f.t.loose || f.m.Prev == 0
	}
	f.m, f.tried = nil, false
}

// try looks what has become of the last try, and writes.
func (f *flight) try(ctx context.Context, n int) error {
	if n > 0 {
		landed, err := f.catchUp(ctx)
		if landed || err != nil {
			return err
		}
	}
	if f.m == nil {
		f.mu.Lock()
		f.m = f.t.plan(f.b, n == 0)
		f.mu.Unlock()
		if f.m == nil {
			return nil // all of it was so already
		}
	}
	data, err := f.m.encode()
	if err != nil {
		return err
	}
	name := f.t.name
	r, err := f.stream.Put(ctx, &nats.Msg{Subject: f.names.log(name), Data: data}, func() *nats.Msg { return f.names.piece(name) },
		jetstream.WithExpectLastSequencePerSubject(f.t.last))
	switch {
	case err == nil:
		f.land(r, len(data))
		return nil
	case jet.Overtaken(err):
		return fmt.Errorf("%w: %w", errAgain, err)
	case jet.Transient(err):
		f.tried = true
	}
	return err
}

// land makes a message come true that is in the log. What was unsure cannot get there any more.
func (f *flight) land(r jet.Ref, size int) {
	f.b.settle(r.Seq)
	f.advance(f.t, f.m, r, size)
	if f.tried && f.m.Prev == 0 {
		f.t.loose = true
	}
	clear(f.t.unsure)
}

// catchUp reads what is in the log behind what is known. landed says that the flight's own message was there. What it finds is so; that
// it finds nothing behind need not be, and what is written next is compared with the log; that there is no log at all is made sure.
func (f *flight) catchUp(ctx context.Context) (landed bool, err error) {
	moved := false
	for {
		r, found, err := f.stream.Next(ctx, f.names.log(f.t.name), f.t.last+1)
		if err != nil {
			return false, err
		}
		if !found {
			break
		}
		m, err := decode(r.Data)
		if err != nil {
			return false, err
		}
		if f.m != nil && m.ID == f.m.ID {
			f.land(r.Ref, len(r.Data))
			return true, nil
		}
		if !f.t.follows(&m) {
			return false, f.gap(f.t.name, r.Seq)
		}
		f.advance(f.t, &m, r.Ref, len(r.Data))
		moved = true
	}
	if !moved && f.t.last != 0 {
		there, err := f.isThere(ctx)
		if there || err != nil {
			return false, err
		}
		f.advance(f.t, &message{Reset: true}, jet.Ref{}, 0) // somebody else has dropped the log
		moved = true
	}
	if moved {
		f.giveUp()
	}
	return false, nil
}

// isThere says whether there is a log.
func (f *flight) isThere(ctx context.Context) (bool, error) {
	_, found, err := f.stream.Last(ctx, f.names.log(f.t.name))
	if found || err != nil {
		return found, err
	}
	if err := f.stream.SureEmpty(ctx, f.names.quorum()); err != nil {
		return false, err
	}
	_, found, err = f.stream.Last(ctx, f.names.log(f.t.name))
	return found, err
}

// follows says whether a message may come next.
func (t *thread) follows(m *message) bool { return m.Reset || m.Prev == t.last }

// gap is a log of which something is missing.
func (s *Store) gap(thread string, number uint64) error {
	return fmt.Errorf("thread %.80q: what came before message %d is missing from stream %q: restore it, or drop the log with: nats stream purge %s --subject %s",
		thread, number, s.names.root, s.names.root, s.names.log(thread))
}

// advance makes a message of the log come true, unless everybody was told that it did not.
func (s *Store) advance(t *thread, m *message, r jet.Ref, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Reset {
		t.taint, t.logged, t.base = false, 0, r.First()
	}
	if t.unsure[m.ID] {
		t.taint = true
	} else {
		before := t.state.size
		t.state.apply(m, r.Seq)
		s.size += int64(t.state.size - before)
	}
	t.last = r.Seq
	t.logged += size + overhead
}

// drop takes what no longer counts out of a log: all of it, if nothing is live. What cannot be dropped now is when the log
// is next read.
func (s *Store) drop(ctx context.Context, t *thread) {
	whole := t.state.empty() && !t.loose && len(t.unsure) == 0
	upTo := t.base
	if whole {
		upTo = t.last + 1
	}
	once, cancel := context.WithTimeout(ctx, s.link.Wait)
	defer cancel()
	err := s.stream.Purge(once, jetstream.WithPurgeSubject(s.names.thread(t.name)), jetstream.WithPurgeSequence(upTo))
	if err != nil {
		s.link.Logger.DebugContext(ctx, "outboxstore_log_not_dropped", "stream", s.names.root, "error", err)
		return
	}
	if whole {
		s.advance(t, &message{Reset: true}, jet.Ref{}, 0)
	}
}
