package inbox

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Kinds of cells that an inbox has in a thread of the store. Other packages have kinds of their own there.
const (
	entryKind  = "inbox-entry"  // a notification, by number
	recordKind = "inbox-record" // of a task, by its id
	keyKind    = "inbox-key"    // of an entry that must be queued once
	// threadIndex has a group for each thread, with its entries and records.
	threadIndex = "inbox"
)

// stored are the entries and records of threads. Names of threads, tasks and keys have at most store.MaxKey bytes.
type stored struct{ store store.Store }

// change is what append applies.
type change struct {
	thread string
	task   string
	record []byte // replaces that of the task, if it is not nil
	// data is the entry to queue, if it is not nil. An entry with a key is queued once.
	data []byte
	key  string
	at   time.Time
}

// entry is a notification in the store.
type entry struct {
	seq  uint64
	data []byte
	at   time.Time
}

// append applies a change, all of it or none. When the thread had the key before, and the task has not been forgotten,
// nothing changes and the number is 0. An entry of a task without a record fails with [ErrDropped]. The number of an entry is the
// thread's next revision: no entry before had it.
func (t stored) append(ctx context.Context, c *change) (seq uint64, err error) {
	var q store.Query
	if c.key != "" {
		q.Cells = append(q.Cells, store.One(keyKind, c.key))
	}
	if c.data != nil && c.task != "" {
		q.Cells = append(q.Cells, store.One(recordKind, c.task))
	}
	_, err = store.Update(ctx, t.store, c.thread, q, func(s store.Snapshot) (*store.Batch, error) {
		seq = 0
		if _, taken := s.Cell(keyKind, c.key); taken && c.key != "" {
			return nil, nil
		}
		if _, known := s.Cell(recordKind, c.task); !known && c.data != nil && c.task != "" {
			return nil, ErrDropped
		}
		if c.data != nil {
			seq = s.Revision + 1
		}
		return c.batch(seq), nil
	})
	if err != nil {
		return 0, err
	}
	return seq, nil
}

// claim applies a change if the record of its task is still was. It reports true as well when an attempt with an unknown outcome had
// applied the change.
func (t stored) claim(ctx context.Context, c *change, was []byte) (ok bool, err error) {
	q := store.Query{Cells: []store.Range{store.One(recordKind, c.task)}}
	_, err = store.Update(ctx, t.store, c.thread, q, func(s store.Snapshot) (*store.Batch, error) {
		now, known := s.Cell(recordKind, c.task)
		ok = known && (bytes.Equal(now, was) || bytes.Equal(now, c.record))
		if !ok || bytes.Equal(now, c.record) {
			return nil, nil
		}
		return c.batch(0), nil
	})
	return ok && err == nil, err
}

// batch returns the batch of a change, nil if it changes nothing.
func (c *change) batch(seq uint64) *store.Batch {
	index := []store.IndexKey{{Name: threadIndex, Group: c.thread}}
	b := &store.Batch{}
	if c.key != "" {
		b.Put = append(b.Put, store.Cell{Kind: keyKind, Key: c.key})
	}
	if c.record != nil {
		b.Put = append(b.Put, store.Cell{Kind: recordKind, Key: c.task, Value: c.record, Index: index})
	}
	if seq != 0 {
		value := append([]byte(store.Number(c.at.UnixMilli())), c.data...)
		b.Put = append(b.Put, store.Cell{Kind: entryKind, Key: entryKey(seq), Value: value, Index: index})
	}
	if len(b.Put) == 0 {
		return nil
	}
	return b
}

// entryKey returns the key of an entry's cell.
func entryKey(seq uint64) string { return store.Number(int64(seq)) } //nolint:gosec // a revision is small

// page returns the entries of a thread whose numbers are greater than after, oldest first, limit at most. The page has all
// that the store had up to the number upTo.
func (t stored) page(ctx context.Context, thread string, after uint64, limit int) (entries []entry, upTo uint64, err error) {
	s, err := t.store.Read(ctx, thread, store.Query{Cells: []store.Range{{Kind: entryKind, From: entryKey(after + 1), Limit: limit}}})
	if err != nil {
		return nil, 0, err
	}
	entries, upTo = make([]entry, len(s.Cells)), s.Revision
	for i, c := range s.Cells {
		seq, err := store.ParseNumber(c.Key)
		if err != nil {
			return nil, 0, err
		}
		at, err := store.ParseNumber(string(c.Value))
		if err != nil {
			return nil, 0, fmt.Errorf("entry %d: %w", seq, err)
		}
		entries[i] = entry{seq: uint64(seq), data: c.Value[len(store.Number(0)):], at: time.UnixMilli(at)} //nolint:gosec // it was a uint64
	}
	if len(entries) == limit {
		upTo = entries[limit-1].seq
	}
	return entries, upTo, nil
}

// forget drops the records of tasks and frees their keys.
func (t stored) forget(ctx context.Context, thread string, tasks ...string) error {
	var ranges []store.Range
	for _, task := range tasks {
		ranges = append(ranges, store.One(recordKind, task), store.One(keyKind, task))
	}
	return t.drop(ctx, thread, ranges)
}

func (t stored) drop(ctx context.Context, thread string, ranges []store.Range) error {
	if len(ranges) == 0 {
		return nil
	}
	_, err := store.ApplySurely(ctx, t.store, store.Batch{Thread: thread, Base: store.AnyRevision, Delete: ranges})
	return err
}

// threads lists the threads that have entries or records, in order. What another process added may be missing for some seconds.
func (t stored) threads(ctx context.Context) ([]string, error) {
	groups, err := t.store.Count(ctx, threadIndex)
	return slices.Sorted(maps.Keys(groups)), err
}

// records returns the records of a thread, by task.
func (t stored) records(ctx context.Context, thread string) (map[string][]byte, error) {
	s, err := t.store.Read(ctx, thread, store.Query{Cells: []store.Range{store.All(recordKind)}})
	out := make(map[string][]byte, len(s.Cells))
	for _, c := range s.Cells {
		out[c.Key] = c.Value
	}
	return out, err
}
