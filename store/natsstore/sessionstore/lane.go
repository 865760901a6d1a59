package sessionstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// lane is where writers of one log go one behind the other. The Store's lock guards users, the lane itself
// the rest.
type lane struct {
	thread string
	users  int
	turn   chan struct{}

	// next is the place of the next record, 0 if it is not known.
	next uint64
	// unsure are writes of which one may be at the place next although its caller was told that it failed, with the
	// ids of their messages.
	unsure map[string]map[string]bool
}

// maxLanes is how many logs are remembered that nobody writes to.
const maxLanes = 1024

func (s *Store) enter(thread string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[thread]
	if l == nil {
		l = &lane{thread: thread, turn: make(chan struct{}, 1), unsure: map[string]map[string]bool{}}
		s.lanes[thread] = l
	}
	l.users++
	return l
}

func (s *Store) leave(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	if len(s.lanes) <= maxLanes {
		return
	}
	for thread, l := range s.lanes {
		if l.users == 0 && len(l.unsure) == 0 {
			delete(s.lanes, thread)
		}
	}
}

func (l *lane) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *lane) give() { <-l.turn }

// append writes one record of a log, once.
func (s *Store) append(ctx context.Context, l *lane, lines []line) error {
	w := &write{lane: l, id: uuid.NewString(), lines: lines}
	for n := 0; len(w.lines) > 0; n++ {
		err := s.find(ctx, l)
		if err == nil {
			err = s.put(ctx, w)
		}
		if jet.Overtaken(err) {
			err = s.settle(ctx, w)
		} else if err == nil {
			w.advance()
			return nil
		}
		if err != nil && !jet.Transient(err) {
			w.doubt()
			return err
		}
		if late := jet.Pause(ctx, n); late != nil {
			w.doubt()
			return errors.Join(late, err)
		}
	}
	return nil
}

// write is a record being written.
type write struct {
	*lane

	id    string
	lines []line
	// tried says that it may be at the place next.
	tried bool
}

// find looks where the next record goes, if that is not known. It need not be the latest: each place is written once, and a place that is
// taken is gone past.
func (s *Store) find(ctx context.Context, l *lane) error {
	if l.next != 0 {
		return nil
	}
	last, found, err := s.stream.LastSubject(ctx, s.names.log(l.thread))
	if err != nil {
		return err
	}
	at := uint64(0)
	if found {
		if at, err = place(last); err != nil {
			return err
		}
	}
	l.next = at + 1
	return nil
}

func (s *Store) put(ctx context.Context, w *write) error {
	first, err := json.Marshal(head{Thread: w.thread})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	lines := [][]byte{first}
	for i := range w.lines {
		lines = append(lines, w.lines[i].data)
	}
	msg := &nats.Msg{Subject: s.names.record(w.thread, w.next), Data: bytes.Join(lines, []byte("\n")), Header: nats.Header{}}
	msg.Header.Set(writeHeader, w.id)
	_, err = s.stream.Put(ctx, msg, s.names.piece(w.thread), jetstream.WithExpectLastSequencePerSubject(0))
	w.tried = w.tried || jet.Transient(err)
	return err
}

// settle looks who has written in the place of the next record: this write, one before it whose caller was told that it had
// failed and may be giving the same again, or somebody else.
func (s *Store) settle(ctx context.Context, w *write) error {
	r, found, err := s.stream.Last(ctx, s.names.record(w.thread, w.next))
	if err != nil || !found { // a server may say that it is there before it shows it
		return err
	}
	who := r.Header.Get(writeHeader)
	ids, known := w.unsure[who]
	switch {
	case who == w.id:
		w.lines = nil
	case known:
		w.lines = slices.DeleteFunc(slices.Clone(w.lines), func(each line) bool { return ids[each.id] })
	}
	w.advance()
	return nil
}

// advance moves on behind a record that is there.
func (w *write) advance() {
	w.next++
	w.tried = false
	clear(w.unsure)
}

// doubt remembers a write that may be there all the same.
func (w *write) doubt() {
	if !w.tried {
		return
	}
	ids := map[string]bool{}
	for _, each := range w.lines {
		ids[each.id] = true
	}
	w.unsure[w.id] = ids
}
