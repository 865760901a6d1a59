package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Names of what a [Runs] keeps in the thread of a run.
const (
	// runPrefix begins the names of the threads of runs. It is no valid UTF-8, so that no conversation has such a name.
	runPrefix = "\xffrecord/"
	runLog    = "record"
	runKind   = "record"
	// runIndex has the runs by the time of their last write, newest first.
	runIndex = "record"
)

// onCallTime bounds a call, which has no context of its own.
const onCallTime = 5 * time.Second

var errReadOnly = errors.New("the store was opened to read")

// Runs is a [Store] on a store.Store: each run is a thread of its own. What other processes wrote may be missing from lists for some
// seconds. A record to which several handles write at once may grow beyond Config.RunBytes.
type Runs struct {
	store    store.Store
	keeper   *Keeper
	readOnly bool

	mu   sync.Mutex
	last int64 // time of the last write
}

var _ Store = (*Runs)(nil)

// On returns the records of a store, and removes the oldest beyond Config.Keep. The caller closes the store, after the Runs.
func On(ctx context.Context, s store.Store, cfg Config) (*Runs, error) {
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	r := newRuns(s, cfg)
	if err := r.prune(ctx, cfg.Keep); err != nil {
		return nil, fmt.Errorf("record: remove old records: %w", err)
	}
	return r, nil
}

// ReadOnly returns the records of a store. It removes none, and Start fails.
func ReadOnly(s store.Store) *Runs {
	r := newRuns(s, Config{})
	r.readOnly = true
	return r
}

func newRuns(s store.Store, cfg Config) *Runs {
	r := &Runs{store: s}
	r.keeper = NewKeeper("record", cfg, r.put)
	return r
}

// Start implements [Store].
func (r *Runs) Start(s Start) error { return r.keeper.Start(s) }

// Add implements [Store].
func (r *Runs) Add(run string, e Entry) error { return r.keeper.Add(run, e) }

// End implements [Store].
func (r *Runs) End(run string, e End) error { return r.keeper.End(run, e) }

// Close implements [Store]. The store below stays open.
func (r *Runs) Close() error { return r.keeper.Close() }

// runCell is what a run's cell has.
type runCell struct {
	// First is the line that began the record.
	First   json.RawMessage `json:"first"`
	Bytes   int64           `json:"bytes"`
	Written int64           `json:"written"` // in nanoseconds of Unix time
}

// put adds a line to a record, unless there is no room, or no record and the line begins none.
func (r *Runs) put(p Put) (kept bool, err error) {
	if r.readOnly {
		return false, errReadOnly
	}
	if err := r.keeper.Open(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(background(), onCallTime)
	defer cancel()
	thread := runPrefix + p.Run
	c, known, err := r.read(ctx, thread)
	if err != nil || c.Bytes+int64(len(p.Data)) > p.Limit || !known && !p.First {
		return false, err
	}
	if !known {
		c.First = p.Data
	}
	c.Bytes += int64(len(p.Data))
	c.Written = r.now(c.Written)
	cell, err := c.cell()
	if err != nil {
		return false, err
	}
	_, err = store.ApplySurely(ctx, r.store, store.Batch{
		Thread: thread, Base: store.AnyRevision, Put: []store.Cell{cell}, Append: []store.Entry{{Log: runLog, Data: p.Data}},
	})
	return err == nil, err
}

// read reads the cell of a run, if there is one.
func (r *Runs) read(ctx context.Context, thread string) (c runCell, known bool, err error) {
	s, err := r.store.Read(ctx, thread, store.Query{Cells: []store.Range{store.One(runKind, "")}})
	if err != nil {
		return c, false, err
	}
	return cellOf(s)
}

// now returns the time of a write, which is after that of all writes before.
func (r *Runs) now(before int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last+1, before+1, time.Now().UnixNano())
	return r.last
}

func (c runCell) cell() (store.Cell, error) {
	value, err := json.Marshal(c)
	return store.Cell{Kind: runKind, Value: value, Index: []store.IndexKey{{Name: runIndex, Key: store.Number(-c.Written)}}}, err
}

// cellOf decodes the cell of a run, if there is one.
func cellOf(s store.Snapshot) (c runCell, known bool, err error) {
	data, known := s.Cell(runKind, "")
	if known {
		err = json.Unmarshal(data, &c)
	}
	return c, known, err
}

// runOf returns the id of the run of a thread.
func runOf(thread string) string { return strings.TrimPrefix(thread, runPrefix) }

// background returns the context of calls that have none.
func background() context.Context { return context.Background() } //nolint:forbidigo // the interface has no contexts
