package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/store"
)

// Names of what a [Threads] keeps in a thread of the store. The mailbox and other views have names of their own there.
const (
	entryKind  = "outbox-entry"  // by number
	recordKind = "outbox-record" // by task
	keyKind    = "outbox-key"    // by key
	// threadIndex has a group for each thread, with its entries and records.
	threadIndex = "outbox"
)

// Threads is a [Store] on a store.Store. It keeps what belongs to a thread in the thread of the store with that name; names, tasks and
// keys have at most store.MaxKey bytes.
type Threads struct{ store store.Store }

var _ Store = (*Threads)(nil)

// On returns the outboxes of a store. The caller closes the store, after the Outbox.
func On(s store.Store) *Threads { return &Threads{store: s} }

// Append implements [Store]. The number of an entry is the thread's next revision: no entry before had it.
func (t *Threads) Append(ctx context.Context, c Change) (seq uint64, err error) {
	var q store.Query
	if c.Key != "" {
		q.Cells = []store.Range{store.One(keyKind, c.Key)}
	}
	_, err = store.Update(ctx, t.store, c.Thread, q, func(s store.Snapshot) (*store.Batch, error) {
		seq = 0
		if len(s.Cells) > 0 {
			return nil, nil // the key is taken
		}
		if c.Data != nil {
			seq = s.Revision + 1
		}
		return batchOf(c, seq), nil
	})
	if err != nil {
		return 0, err
	}
	return seq, nil
}

// batchOf returns the batch of a change, nil if it changes nothing.
func batchOf(c Change, seq uint64) *store.Batch {
	index := []store.IndexKey{{Name: threadIndex, Group: c.Thread}}
	b := &store.Batch{}
	if c.Key != "" {
		b.Put = append(b.Put, store.Cell{Kind: keyKind, Key: c.Key})
	}
	if c.Task != "" {
		b.Put = append(b.Put, store.Cell{Kind: recordKind, Key: c.Task, Value: c.Record, Index: index})
	}
	if seq != 0 {
		value := append([]byte(store.Number(c.At.UnixMilli())), c.Data...)
		b.Put = append(b.Put, store.Cell{Kind: entryKind, Key: entryKey(seq), Value: value, Index: index})
	}
	if len(b.Put) == 0 {
		return nil
	}
	return b
}

// entryKey returns the key of an entry's cell.
func entryKey(seq uint64) string { return store.Number(int64(seq)) } //nolint:gosec // a revision is small

// Pending implements [Store].
func (t *Threads) Pending(ctx context.Context, thread string, after uint64, limit int) ([]Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	s, err := t.store.Read(ctx, thread, store.Query{Cells: []store.Range{{Kind: entryKind, From: entryKey(after + 1), Limit: limit}}})
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(s.Cells))
	for i, c := range s.Cells {
		seq, err := store.ParseNumber(c.Key)
		if err != nil {
			return nil, err
		}
		at, err := store.ParseNumber(string(c.Value))
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", seq, err)
		}
		out[i] = Entry{Seq: uint64(seq), Data: c.Value[len(store.Number(0)):], At: milli(at)} //nolint:gosec // it was a uint64
	}
	return out, nil
}

// Remove implements [Store].
func (t *Threads) Remove(ctx context.Context, thread string, seqs ...uint64) error {
	ranges := make([]store.Range, len(seqs))
	for i, seq := range seqs {
		ranges[i] = store.One(entryKind, entryKey(seq))
	}
	return t.remove(ctx, thread, ranges)
}

// Forget implements [Store].
func (t *Threads) Forget(ctx context.Context, thread string, tasks ...string) error {
	var ranges []store.Range
	for _, task := range tasks {
		ranges = append(ranges, store.One(recordKind, task), store.One(keyKind, task))
	}
	return t.remove(ctx, thread, ranges)
}

func (t *Threads) remove(ctx context.Context, thread string, ranges []store.Range) error {
	if len(ranges) == 0 {
		return nil
	}
	_, err := store.ApplySurely(ctx, t.store, store.Batch{Thread: thread, Base: store.AnyRevision, Delete: ranges})
	return err
}

// Threads implements [Store]. What another process added may be missing for some seconds.
func (t *Threads) Threads(ctx context.Context) ([]string, error) {
	groups, err := t.store.Count(ctx, threadIndex)
	return slices.Sorted(maps.Keys(groups)), err
}

// Records implements [Store].
func (t *Threads) Records(ctx context.Context, thread string) (map[string][]byte, error) {
	s, err := t.store.Read(ctx, thread, store.Query{Cells: []store.Range{store.All(recordKind)}})
	out := make(map[string][]byte, len(s.Cells))
	for _, c := range s.Cells {
		out[c.Key] = c.Value
	}
	return out, err
}
