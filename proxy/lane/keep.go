package lane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/thread"
)

// undone takes a compaction out that an operator has taken back.
func (s *Set) undone(ctx context.Context, l *Lane) {
	if s.log == nil || l.Marker != nil {
		return
	}
	had := l.Swap
	if err := s.log.undone(ctx, l.State); err != nil {
		s.cfg.Failed(err)
	}
	if l.Swap != had {
		l.Moved++
	}
}

// storeTime bounds how long a request waits for the store: after it, the request continues with what is in memory. For slowRest after a store was
// not there in time a request waits for slowTime only.
const (
	storeTime = 2 * time.Second
	slowTime  = 50 * time.Millisecond
	slowRest  = 10 * time.Second
)

// bounded is a context for the store, also for what a client left behind.
func (s *Set) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := storeTime
	if time.Since(time.Unix(0, s.slow.Load())) < slowRest {
		wait = slowTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	return ctx, func() {
		if wait == storeTime && ctx.Err() != nil {
			s.slow.Store(time.Now().UnixNano())
		}
		cancel()
	}
}

// saves is how often a lane is saved that others change all the time.
const saves = 8

// Save saves a lane, which must be locked, with the messages that its thread does not have. What another process has saved meanwhile is
// taken in; a lane whose conversation went another way there becomes one of its own.
func (s *Set) Save(ctx context.Context, l *Lane) (err error) {
	if s.log == nil {
		l.Marker, l.Events = nil, nil
		l.Kept = len(l.Messages)
		l.forget()
		return nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for range saves {
		kept, end := l.Kept, l.Kept
		for end < min(len(l.Messages), len(l.Hashes)) && l.Messages[end] != nil {
			end++
		}
		l.Kept = end
		err = s.log.write(ctx, l.State, thread.Commit{Append: l.unkept(kept, end), Run: l.Latest, Events: l.Events}, l.Marker)
		if err == nil {
			l.Marker, l.Events, l.unsure = nil, nil, nil
			l.base = l.State.copy()
			l.forget()
			return nil
		}
		if !errors.Is(err, errStale) {
			l.unsure = l.written()
			l.Kept = kept
			break
		}
		l.Kept = kept
		var theirs *State
		if theirs, err = s.log.read(ctx, l.ID); err != nil {
			break
		}
		switch {
		case l.acknowledged(theirs):
		case theirs == nil: // it was deleted
			l.Version, l.Kept, l.base = 0, 0, &State{}
		case diverged(l.Hashes, theirs.Hashes):
			l.Parent, l.ID, l.Version, l.Kept, l.base = l.ID, newID(), 0, 0, &State{}
		default:
			l.absorb(theirs)
		}
	}
	if err != nil {
		s.cfg.Failed(err)
	}
	return err
}

// unsure is what was written when the store did not answer: it may be there all the same.
type unsure struct {
	raw    []byte
	marker *compaction.Marker
	events int
}

func (l *Lane) written() *unsure {
	next := *l.State
	next.Version++
	raw, _ := json.Marshal(&next)
	return &unsure{raw, l.Marker, len(l.Events)}
}

// acknowledged reports whether what the store has of a lane is what this process wrote and took for lost. Then that is written.
func (l *Lane) acknowledged(theirs *State) bool {
	u := l.unsure
	if u == nil || theirs == nil {
		return false
	}
	if raw, err := json.Marshal(theirs); err != nil || !bytes.Equal(raw, u.raw) {
		return false
	}
	if l.Marker == u.marker {
		l.Marker = nil
	}
	l.Version, l.Kept, l.base, l.Events, l.unsure = theirs.Version, theirs.Kept, theirs.copy(), l.Events[u.events:], nil
	return true
}

// forget drops the messages that a compaction replaces and the log has: the client sends them again and again, and the model does not see them.
func (l *Lane) forget() {
	for i := range min(l.Kept, len(l.Messages)) {
		if l.Swap.Has(i) {
			l.Messages[i] = nil
		}
	}
}

// Rest drops the texts of lanes that were not used since a moment. A client's next request has them.
func (s *Set) Rest(before time.Time) {
	s.All(func(l *Lane) {
		if !l.view.Load().used.Before(before) {
			return
		}
		l.Lock()
		defer l.Unlock()
		if l.Busy == 0 && l.Used.Before(before) {
			l.Messages = nil
		}
	})
}

// unkept are the messages of items, under ids that stay unique when the client rewrites its list.
func (l *Lane) unkept(from, to int) (out []abi.Message) {
	for i := from; i < to; i++ {
		for _, m := range l.Messages[i] {
			m.ID = l.keptID(&m)
			out = append(out, m)
		}
	}
	return out
}

func (l *Lane) keptID(m *abi.Message) string { return fmt.Sprintf("e%d/%s", l.Epoch, m.ID) }

// Messages returns messages of a lane's thread, by their numbers from 1.
func (s *Set) Messages(ctx context.Context, id string, from uint64, limit int) ([]abi.Message, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.log.messages(ctx, id, from, limit)
}

// Trim deletes lanes that were not used since a moment.
func (s *Set) Trim(ctx context.Context, before time.Time) error { return s.log.trim(ctx, before) }

// Secret returns a value that is made once for all processes, for keyed hashes.
func (s *Set) Secret(ctx context.Context, fresh []byte) ([]byte, error) {
	if s.log == nil {
		return fresh, nil
	}
	return s.log.secret(ctx, fresh)
}
