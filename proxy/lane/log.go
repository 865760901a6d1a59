package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
)

// Log keeps lanes beyond a process.
type Log interface {
	// Load returns the newest lanes of a group, with their revisions.
	Load(ctx context.Context, group string, limit int) ([]*State, []uint64, error)
	// Save replaces the state of a lane and adds messages to its log.
	Save(ctx context.Context, st *State, rev uint64, messages []abi.Message) (uint64, error)
	// Messages returns messages of a lane, by their numbers from 1.
	Messages(ctx context.Context, lane string, from uint64, limit int) ([]abi.Message, error)
	// Trim deletes lanes that were not used since a moment.
	Trim(ctx context.Context, before time.Time) error
	// Secret returns a value that is made once, for keyed hashes.
	Secret(ctx context.Context, fresh []byte) ([]byte, error)
}

// Names in the store.
const (
	kindLane  = "proxy.lane"
	keyState  = "state"
	logName   = "message"
	indexName = "proxy.lanes"
	indexUsed = "proxy.used"
	usedGroup = "all"
	own       = "proxy"
	kindOwn   = "proxy.secret"
)

// StoreLog is a [Log] on a store. It is safe for concurrent use.
type StoreLog struct{ store store.Store }

// NewLog returns a log on a store.
func NewLog(s store.Store) *StoreLog { return &StoreLog{s} }

// Load implements [Log].
func (l *StoreLog) Load(ctx context.Context, group string, limit int) ([]*State, []uint64, error) {
	refs, err := l.store.Scan(ctx, store.Scan{Index: indexName, Group: group, Limit: limit})
	if err != nil {
		return nil, nil, fmt.Errorf("proxy: lanes: %w", err)
	}
	var states []*State
	var revs []uint64
	for _, ref := range refs {
		snap, err := l.store.Read(ctx, ref.Thread, store.Query{Cells: []store.Range{store.One(kindLane, keyState)}})
		if err != nil {
			return states, revs, fmt.Errorf("proxy: lane %s: %w", ref.Thread, err)
		}
		raw, ok := snap.Cell(kindLane, keyState)
		st := &State{}
		if !ok || json.Unmarshal(raw, st) != nil {
			continue
		}
		states, revs = append(states, st), append(revs, snap.Revision)
	}
	return states, revs, nil
}

// Save implements [Log]. Of two processes that save one lane the later wins: each request has all that it needs.
func (l *StoreLog) Save(ctx context.Context, st *State, rev uint64, messages []abi.Message) (uint64, error) {
	raw, err := json.Marshal(st)
	if err != nil {
		return rev, fmt.Errorf("proxy: lane %s: %w", st.ID, err)
	}
	used := st.Used.UnixMilli()
	b := store.Batch{Thread: st.ID, Base: rev, Put: []store.Cell{{Kind: kindLane, Key: keyState, Value: raw, Index: []store.IndexKey{
		{Name: indexName, Group: st.Group, Key: store.Number(-used)},
		{Name: indexUsed, Group: usedGroup, Key: store.Number(used)},
	}}}}
	for i := range messages {
		data, err := json.Marshal(&messages[i])
		if err != nil {
			return rev, fmt.Errorf("proxy: lane %s: %w", st.ID, err)
		}
		b.Append = append(b.Append, store.Entry{Log: logName, Data: data})
	}
	next, err := store.ApplySurely(ctx, l.store, b)
	if errors.Is(err, store.ErrConflict) {
		b.Base, b.ID = store.AnyRevision, ""
		next, err = store.ApplySurely(ctx, l.store, b)
	}
	if err != nil {
		return rev, fmt.Errorf("proxy: lane %s: %w", st.ID, err)
	}
	return next, nil
}

// Messages implements [Log].
func (l *StoreLog) Messages(ctx context.Context, id string, from uint64, limit int) ([]abi.Message, error) {
	snap, err := l.store.Read(ctx, id, store.Query{Entries: []store.Span{{Log: logName, From: from, Limit: limit}}})
	if err != nil {
		return nil, fmt.Errorf("proxy: lane %s: %w", id, err)
	}
	var out []abi.Message
	for _, e := range snap.Entries {
		var m abi.Message
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return out, fmt.Errorf("proxy: lane %s: message %d: %w", id, e.Seq, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// trimPage is how many lanes are deleted at a time.
const trimPage = 256

// Trim implements [Log].
func (l *StoreLog) Trim(ctx context.Context, before time.Time) error {
	for {
		refs, err := l.store.Scan(ctx, store.Scan{Index: indexUsed, Group: usedGroup, To: store.Number(before.UnixMilli()), Limit: trimPage})
		if err != nil || len(refs) == 0 {
			return err
		}
		for _, ref := range refs {
			if _, err := l.store.Apply(ctx, store.Batch{Thread: ref.Thread, Base: store.AnyRevision, Drop: true}); err != nil {
				return fmt.Errorf("proxy: lane %s: %w", ref.Thread, err)
			}
		}
	}
}

// Secret implements [Log].
func (l *StoreLog) Secret(ctx context.Context, fresh []byte) ([]byte, error) {
	out := fresh
	_, err := store.Update(ctx, l.store, own, store.Query{Cells: []store.Range{store.One(kindOwn, keyState)}},
		func(snap store.Snapshot) (*store.Batch, error) {
			if raw, ok := snap.Cell(kindOwn, keyState); ok {
				out = raw
				return nil, nil
			}
			out = fresh
			return &store.Batch{Put: []store.Cell{{Kind: kindOwn, Key: keyState, Value: fresh}}}, nil
		})
	if err != nil {
		return nil, fmt.Errorf("proxy: secret: %w", err)
	}
	return out, nil
}
