package thread

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
)

// Threads with a log are listed by a cell without a key, and by an index of it.
const (
	listKind  = "log"
	listIndex = "log"
)

// callTime bounds a call that reads or writes one cell or some events, largeTime one that may be for many megabytes.
const callTime, largeTime = 5 * time.Second, 30 * time.Second

// ErrUnknown is a thread that has no log.
var ErrUnknown = errors.New("it has no log")

// Threads is the view of the conversations of a store. The id of a conversation is valid UTF-8 of 1 to store.MaxKey bytes. A call that
// reads messages or events, or commits messages or a compaction state, takes 30 s at most, any other one 5 s.
type Threads struct{ store store.Store }

var _ compaction.Store = (*Threads)(nil)

// On returns the conversations of a store.
func On(s store.Store) *Threads { return &Threads{store: s} }

// Listed is the cell that lists a thread. It comes with the first message of the log.
func Listed(thread string) store.Cell {
	return store.Cell{Kind: listKind, Index: []store.IndexKey{{Name: listIndex, Key: thread}}}
}

// call runs a call with a deadline.
func (t *Threads) call(ctx context.Context, thread string, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(ctx)
	if err == nil || errors.Is(err, compaction.ErrConflict) {
		return err
	}
	return fmt.Errorf("thread %.80q: %w", thread, err)
}

// read reads parts of a thread, and has them decoded.
func (t *Threads) read(ctx context.Context, thread string, q store.Query, decode func(store.Snapshot) error) error {
	limit := callTime
	if len(q.Entries) > 0 {
		limit = largeTime
	}
	return t.call(ctx, thread, limit, func(ctx context.Context) error {
		s, err := t.store.Read(ctx, thread, q)
		if err != nil {
			return err
		}
		return decode(s)
	})
}

// Append appends messages to a log, next to each other. The log begins with the first of them: no messages make no log.
func (t *Threads) Append(ctx context.Context, thread string, messages ...abi.Message) error {
	_, err := t.Commit(ctx, thread, Commit{Append: messages})
	return err
}

// Replace replaces the messages with these ids. It fails, and replaces none, when the log lacks one of them. It reads the whole log.
func (t *Threads) Replace(ctx context.Context, thread string, messages ...abi.Message) error {
	_, err := t.Commit(ctx, thread, Commit{Replace: messages})
	return err
}

// Messages reads a log. It fails with [ErrUnknown] when there is none.
func (t *Threads) Messages(ctx context.Context, thread string) (messages []abi.Message, err error) {
	err = t.read(ctx, thread, MessagesQuery(1, math.MaxInt32), func(s store.Snapshot) error {
		if s.Last[MessageKind] == 0 {
			return ErrUnknown
		}
		_, all, err := MessagesOf(s)
		if err != nil {
			return err
		}
		messages, err = decoded(all)
		return err
	})
	return messages, err
}

// decoded decodes messages of a log.
func decoded(all []Message) ([]abi.Message, error) {
	out := make([]abi.Message, len(all))
	for i := range all {
		m, err := Decode(all[i].Data)
		if err != nil {
			return nil, fmt.Errorf("message %.80q: %w", all[i].ID, err)
		}
		m.ID = all[i].ID
		out[i] = m
	}
	return out, nil
}

// List lists the threads that have a log, in order. Those that another process has just begun may be missing.
func (t *Threads) List(ctx context.Context) (all []string, err error) {
	for ref, err := range store.Refs(ctx, t.store, store.Scan{Index: listIndex}) {
		if err != nil {
			return nil, fmt.Errorf("threads: %w", err)
		}
		all = append(all, ref.Thread)
	}
	return all, nil
}
