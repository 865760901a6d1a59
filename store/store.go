package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Errors for errors.Is. See the package's documentation.
var (
	ErrConflict = errors.New("revision conflict")
	ErrExists   = errors.New("already exists")
	ErrInvalid  = errors.New("invalid batch")
)

// Store keeps threads. It is safe for concurrent use. Several processes may share one, if its engine allows that.
// The package that made it closes it. What it returns belongs to the caller.
type Store interface {
	// Read returns parts of a thread, all as of one revision. A thread that does not exist has revision 0.
	Read(ctx context.Context, thread string, q Query) (Snapshot, error)
	// Apply makes all changes of a batch, or none, and returns the thread's new revision. Revisions grow, also across threads that were
	// dropped and made again. The batch is the store's until Apply returns.
	Apply(ctx context.Context, b Batch) (revision uint64, err error)
	// Scan lists cells of all threads by an index.
	Scan(ctx context.Context, s Scan) ([]Ref, error)
	// Count returns how many cells each group of an index has. Groups without cells are missing.
	Count(ctx context.Context, index string) (map[string]int, error)
	// Watch returns a channel that receives after batches whose Notify has the topic, in whatever process. Several may come as one, and
	// one may be lost when a connection is: use it to poll earlier, not instead. The channel is closed when ctx is done.
	Watch(ctx context.Context, topic string) (<-chan struct{}, error)
}

// Clock is a [Store] with a clock that all processes share.
type Clock interface {
	// Time returns the store's time, as of some moment during the call.
	Time(ctx context.Context) (time.Time, error)
}

// AnyRevision as a Batch.Base applies a batch at whatever revision the thread has.
const AnyRevision = math.MaxUint64

// Bounds of what a store accepts. Keys are names of threads, kinds, cells, logs, topics, indexes, groups and index keys, in bytes.
const (
	MaxKey   = 1024
	MaxValue = 64 << 20
	// Remembered is how many batch ids of a thread a store remembers.
	Remembered = 16
)

// Cell is a value of a thread that changes.
type Cell struct {
	// Kind and Key name it within the thread.
	Kind, Key string
	Value     []byte
	// Index has its keys in the store's indexes, at most one in each. Read does not return them.
	Index []IndexKey
}

// IndexKey is a place in an index.
type IndexKey struct {
	// Name names the index. Group and Key are the place: Scan lists one group, ordered by Key.
	Name, Group, Key string
	// Unique refuses a batch with ErrExists if another cell has the same place with Unique.
	Unique bool
}

// Entry is a part of a log. It never changes.
type Entry struct {
	Log string
	// Seq numbers the entries of a log, from 1, without gaps. In a batch it is 0, or must be the number that the entry gets.
	Seq  uint64
	Data []byte
}

// Range selects cells of a kind with From <= Key < To. An empty To selects all from From on.
type Range struct {
	Kind, From, To string
	// Limit is the largest number of cells to return; 0 means all. Deletions ignore it.
	Limit int
}

// One selects one cell.
func One(kind, key string) Range { return Range{Kind: kind, From: key, To: key + "\x00"} }

// All selects all cells of a kind.
func All(kind string) Range { return Range{Kind: kind} }

// Contains reports whether a range selects a key of its kind.
func (r Range) Contains(key string) bool { return key >= r.From && (r.To == "" || key < r.To) }

// Span selects entries of a log by their numbers.
type Span struct {
	Log  string
	From uint64
	// Limit is the largest number of entries to return. With 0 only Snapshot.Last is returned.
	Limit int
}

// Query selects what to read of a thread.
type Query struct {
	Cells   []Range
	Entries []Span
}

// Snapshot is part of a thread at one revision.
type Snapshot struct {
	Revision uint64
	// Cells has what each range of the query selected, in the order of the ranges, and by key within one.
	Cells []Cell
	// Entries has what each span selected, in the order of the spans.
	Entries []Entry
	// Last has the number of the last entry that was ever appended to each log that the query named.
	Last map[string]uint64
}

// Cell returns the value of a cell of the snapshot.
func (s Snapshot) Cell(kind, key string) ([]byte, bool) {
	for i := range s.Cells {
		if c := &s.Cells[i]; c.Kind == kind && c.Key == key {
			return c.Value, true
		}
	}
	return nil, false
}

// Scan selects cells by an index: those of a group with From <= key < To, ordered by key and then by thread, kind and cell key.
type Scan struct {
	Index, Group string
	From, To     string
	// After is the last cell of the page before; zero is the first page.
	After Ref
	Limit int
	// Values also returns the values of the cells.
	Values bool
}

// Ref is a cell as an index has it.
type Ref struct {
	// IndexKey is its key in the index.
	IndexKey          string
	Thread, Kind, Key string
	// Value is set if Scan.Values asked for it.
	Value []byte
}

// Before orders refs of a group.
func (r Ref) Before(o Ref) bool {
	switch {
	case r.IndexKey != o.IndexKey:
		return r.IndexKey < o.IndexKey
	case r.Thread != o.Thread:
		return r.Thread < o.Thread
	case r.Kind != o.Kind:
		return r.Kind < o.Kind
	default:
		return r.Key < o.Key
	}
}

// Number returns a key that sorts as the number does. It has 8 bytes.
func Number(n int64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)^(1<<63)) //nolint:gosec // the bits are meant
	return string(b[:])
}

// ParseNumber returns the number at the beginning of a key.
func ParseNumber(key string) (int64, error) {
	if len(key) < 8 {
		return 0, fmt.Errorf("store: key %q has no number", key)
	}
	return int64(binary.BigEndian.Uint64([]byte(key[:8])) ^ (1 << 63)), nil //nolint:gosec // the bits are meant
}
