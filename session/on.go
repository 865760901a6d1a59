package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
)

// Names of what a [Threads] keeps in the thread of a conversation. The mailbox and other views have names of their own there.
const (
	messageLog = "session"
	eventLog   = "session-events"
	logKind    = "session-log"
	stateKind  = "session-state"
	// logIndex has a group for each conversation that has a log.
	logIndex = "session"
)

// onCallTime bounds a call, which has no context of its own.
const onCallTime = 5 * time.Second

var errOnClosed = errors.New("the store is closed")

// Threads is a [Store] on a store.Store. A conversation is the thread of the store with its id: the id has 1 to store.MaxKey bytes.
// All messages of a call are kept or none, and any number of writers may append to one log.
type Threads struct {
	store  store.Store
	closed atomic.Bool
}

var _ Store = (*Threads)(nil)

// On returns the conversations of a store. The caller closes the store, after the Threads.
func On(s store.Store) *Threads { return &Threads{store: s} }

// Close implements [Store]. The store below stays open.
func (t *Threads) Close() error {
	t.closed.Store(true)
	return nil
}

// call runs one call with a deadline.
func (t *Threads) call(thread string, do func(context.Context) error) error {
	if t.closed.Load() {
		return wrap(thread, errOnClosed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), onCallTime) //nolint:forbidigo // the interface has no contexts
	defer cancel()
	return wrap(thread, do(ctx))
}

// Append implements [Store].
func (t *Threads) Append(thread string, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := Check(thread, messages); err != nil {
		return err
	}
	return t.call(thread, func(ctx context.Context) error {
		entries, err := entriesOf(messages, func(m *abi.Message) Line { return Line{Message: m} })
		if err != nil {
			return err
		}
		length := store.Query{Entries: []store.Span{{Log: messageLog}}}
		_, err = store.Update(ctx, t.store, thread, length, func(s store.Snapshot) (*store.Batch, error) {
			b := &store.Batch{Append: entries}
			if s.Last[messageLog] == 0 {
				b.Put = []store.Cell{{Kind: logKind, Index: []store.IndexKey{{Name: logIndex, Group: thread}}}}
			}
			return b, nil
		})
		return err
	})
}

// Replace implements [Store]. It reads the whole log.
func (t *Threads) Replace(thread string, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	return t.call(thread, func(ctx context.Context) error {
		entries, err := entriesOf(messages, func(m *abi.Message) Line { return Line{Replace: m} })
		if err != nil {
			return err
		}
		_, err = store.Update(ctx, t.store, thread, wholeLog(messageLog), func(s store.Snapshot) (*store.Batch, error) {
			log, err := logOf(s)
			if err != nil {
				return nil, err
			}
			for i := range messages {
				if !log.Has(messages[i].ID) {
					return nil, fmt.Errorf("there is no message %.80q to replace", messages[i].ID)
				}
			}
			return &store.Batch{Append: entries}, nil
		})
		return err
	})
}

// Log implements [Store].
func (t *Threads) Log(thread string) (messages []abi.Message, err error) {
	err = t.call(thread, func(ctx context.Context) error {
		s, err := t.store.Read(ctx, thread, wholeLog(messageLog))
		if err != nil {
			return err
		}
		log, err := logOf(s)
		if err == nil {
			messages = log.Messages()
		}
		return err
	})
	return messages, err
}

// Threads implements [Store]. Logs that another process began may be missing for some seconds.
func (t *Threads) Threads() (all []string, err error) {
	err = t.call("", func(ctx context.Context) error {
		groups, err := t.store.Count(ctx, logIndex)
		all = slices.Sorted(maps.Keys(groups))
		return err
	})
	return all, err
}

// entriesOf makes entries of a log of messages.
func entriesOf(messages []abi.Message, line func(*abi.Message) Line) ([]store.Entry, error) {
	out := make([]store.Entry, len(messages))
	for i := range messages {
		data, err := json.Marshal(line(&messages[i]))
		if err != nil {
			return nil, fmt.Errorf("message %.80q: %w", messages[i].ID, err)
		}
		out[i] = store.Entry{Log: messageLog, Data: data}
	}
	return out, nil
}

// wholeLog is the query for all entries of a log.
func wholeLog(name string) store.Query {
	return store.Query{Entries: []store.Span{{Log: name, From: 1, Limit: math.MaxInt32}}}
}

// logOf decodes the message log of a snapshot.
func logOf(s store.Snapshot) (*Log, error) {
	if s.Last[messageLog] == 0 {
		return nil, ErrUnknown
	}
	log := &Log{}
	for _, e := range s.Entries {
		if err := log.Add(e.Data); err != nil {
			return nil, fmt.Errorf("line %d: %w", e.Seq, err)
		}
	}
	return log, nil
}
