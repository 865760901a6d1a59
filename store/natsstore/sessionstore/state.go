package sessionstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// writeHeader names the write that made a record, by which its writer knows it.
const writeHeader = "Mortise-Write"

// Load implements compaction.Store. It need not be the latest: what is made of it is compared when it is swapped in, and a compaction that
// it does not know yet has taken nothing from the log.
func (s *Store) Load(thread string) (state compaction.State, rev uint64, err error) {
	err = s.call(func(ctx context.Context) error {
		r, found, err := s.lastState(ctx, thread)
		if err != nil || !found {
			return err
		}
		s.setLong(thread, len(r.Parts) > 0)
		rev = r.Seq
		if err := json.Unmarshal(r.Data, &state); err != nil {
			return fmt.Errorf("state %d is damaged: %w", rev, err)
		}
		return nil
	})
	if err != nil {
		return compaction.State{}, 0, wrap(thread, err)
	}
	return state, rev, nil
}

// lastState reads a state, again if another takes its place meanwhile.
func (s *Store) lastState(ctx context.Context, thread string) (r jet.Record, found bool, err error) {
	for n := 0; ; n++ {
		r, found, err = s.stream.Last(ctx, s.names.state(thread))
		if !errors.Is(err, jet.ErrGone) {
			return r, found, err
		}
		if late := jet.Pause(ctx, n); late != nil {
			return r, false, errors.Join(late, err)
		}
	}
}

func (s *Store) setLong(thread string, long bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if long {
		s.long[thread] = true
	} else {
		delete(s.long, thread)
	}
}

// Swap implements compaction.Store.
func (s *Store) Swap(thread string, rev uint64, state compaction.State) (uint64, error) {
	data, err := json.Marshal(state)
	if err != nil {
		return 0, wrap(thread, err)
	}
	w := &swap{Store: s, thread: thread, rev: rev, id: uuid.NewString(), data: data}
	if err := s.call(w.run); err != nil {
		return 0, wrap(thread, err)
	}
	return w.next.Seq, nil
}

// swap is a Swap under way.
type swap struct {
	*Store

	thread string
	rev    uint64
	id     string
	data   []byte
	next   jet.Ref
	// unsure says that the state may have been written by a try that failed. checked says that it is certain what the state is.
	unsure, checked bool
}

// run tries until it is certain what came of it.
func (w *swap) run(ctx context.Context) error {
	for n := 0; ; n++ {
		done, err := w.try(ctx)
		if done || err != nil && !jet.Transient(err) {
			return err
		}
		if late := jet.Pause(ctx, n); late != nil {
			return errors.Join(late, err)
		}
	}
}

func (w *swap) try(ctx context.Context) (done bool, err error) {
	msg := &nats.Msg{Subject: w.names.state(w.thread), Data: w.data, Header: nats.Header{}}
	msg.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	msg.Header.Set(writeHeader, w.id)
	r, err := w.stream.Put(ctx, msg, w.names.statePiece(w.thread), jetstream.WithExpectLastSequencePerSubject(w.rev))
	switch {
	case err == nil:
		w.landed(ctx, r)
		return true, nil
	case jet.Overtaken(err):
		return w.look(ctx)
	case jet.Transient(err):
		w.unsure = true
	}
	return false, err
}

var errUnsure = errors.New("it is not certain whether the state was swapped in before somebody else changed it: load it")

// look finds out who has written. A server may say that somebody has before it shows it, and one that is cut off may say so of what was
// true before: nobody is told of a conflict by it.
func (w *swap) look(ctx context.Context) (done bool, err error) {
	r, found, err := w.lastState(ctx, w.thread)
	switch {
	case err != nil:
		return false, err
	case found && r.Header.Get(writeHeader) == w.id:
		w.landed(ctx, r.Ref)
		return true, nil
	case r.Seq == w.rev: // also when there is none
		return false, nil
	case !w.checked:
		if err := w.sure(ctx); err != nil {
			return false, err
		}
		w.checked = true
		return w.look(ctx)
	case w.unsure:
		return true, errUnsure
	default:
		return true, compaction.ErrConflict
	}
}

// landed drops the pieces of the state before.
func (w *swap) landed(ctx context.Context, r jet.Ref) {
	w.next = r
	w.mu.Lock()
	long := w.long[w.thread]
	w.mu.Unlock()
	w.setLong(w.thread, len(r.Parts) > 0)
	if !long {
		return
	}
	err := w.stream.Purge(ctx, jetstream.WithPurgeSubject(w.names.statePieces(w.thread)), jetstream.WithPurgeSequence(r.First()))
	if err != nil {
		w.link.Logger.DebugContext(ctx, "sessionstore_pieces_not_dropped", "stream", w.names.root, "error", err)
	}
}
