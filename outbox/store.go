package outbox

import (
	"context"
	"time"
)

// Store remembers records and entries of threads. What they mean is the Outbox's
// to decide. Each method is atomic: all of it or none, durable when it returns
// nil, as far as the store is durable at all. A Store must be safe for concurrent
// use. One Outbox at a time uses it.
type Store interface {
	// Append keeps a record, an entry, or both. When the change has a key that the
	// thread had before, and its task has not been forgotten, nothing changes and the
	// sequence number is 0. Sequence numbers grow; none is used twice.
	Append(ctx context.Context, c Change) (seq uint64, err error)
	// Pending returns the entries of a thread whose sequence numbers are greater than
	// after, oldest first, limit at most.
	Pending(ctx context.Context, thread string, after uint64, limit int) ([]Entry, error)
	// Remove drops entries for good, their keys stay taken. Those that are not there
	// are not an error.
	Remove(ctx context.Context, thread string, seqs ...uint64) error
	// Forget drops the records of tasks and frees their keys.
	Forget(ctx context.Context, thread string, tasks ...string) error
	// Threads lists the threads that have entries or records, in order.
	Threads(ctx context.Context) ([]string, error)
	// Records returns the records of a thread, by task. The caller may keep them but
	// not change them.
	Records(ctx context.Context, thread string) (map[string][]byte, error)
}

// Change is what Append applies.
type Change struct {
	Thread string
	// Task and Record keep a record in place of the task's former one, if Task is set.
	Task   string
	Record []byte
	// Data is the entry to queue, if it is not nil. Key is set when it must be queued
	// once: it is the id of the task that it ends.
	Data []byte
	Key  string
	At   time.Time
}

// Entry is what was queued.
type Entry struct {
	Seq  uint64
	Data []byte
	At   time.Time
}
