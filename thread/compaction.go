package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
)

// compactionKind names the cell with the compaction state, and the log of what happened.
const compactionKind = "compaction"

// MaxEvents is how many events of a thread stay, the newest ones.
const MaxEvents = 5000

// stateCell is a compaction state as a cell has it.
type stateCell struct {
	Revision uint64           `json:"revision"`
	State    compaction.State `json:"state"`
}

// Load implements compaction.Store.
func (t *Threads) Load(thread string) (compaction.State, uint64, error) {
	return t.State(background(), thread)
}

// State returns the compaction state of a thread and its revision: nothing and 0 for a new one.
func (t *Threads) State(ctx context.Context, thread string) (state compaction.State, rev uint64, err error) {
	q := store.Query{Cells: []store.Range{store.One(compactionKind, "")}}
	err = t.read(ctx, thread, q, func(s store.Snapshot) error {
		cell, err := stateOf(s)
		state, rev = cell.State, cell.Revision
		return err
	})
	return state, rev, err
}

// Swap implements compaction.Store.
func (t *Threads) Swap(thread string, rev uint64, state compaction.State) (next uint64, err error) {
	return t.Commit(background(), thread, Commit{State: &state, Base: rev})
}

// Record implements compaction.Store. It deletes events before the newest [MaxEvents].
func (t *Threads) Record(e compaction.Event) error {
	_, err := t.Commit(background(), e.Thread, Commit{Events: []compaction.Event{e}})
	return err
}

// Events reads what was recorded of a thread's compactions, oldest first: the newest [MaxEvents].
func (t *Threads) Events(ctx context.Context, thread string) (all []compaction.Event, err error) {
	q := store.Query{Entries: []store.Span{{Log: compactionKind, From: 1, Limit: math.MaxInt32}}}
	err = t.read(ctx, thread, q, func(s store.Snapshot) error {
		all = make([]compaction.Event, len(s.Entries))
		for i := range s.Entries {
			if err := json.Unmarshal(s.Entries[i].Data, &all[i]); err != nil {
				all = nil
				return fmt.Errorf("event %d: %w", s.Entries[i].Seq, err)
			}
		}
		return nil
	})
	return all, err
}

// stateOf decodes the state of a snapshot. It is zero if there is none.
func stateOf(s store.Snapshot) (out stateCell, err error) {
	data, ok := s.Cell(compactionKind, "")
	if !ok {
		return out, nil
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return stateCell{}, fmt.Errorf("compaction state: %w", err)
	}
	return out, nil
}

// background is the context of calls that have none: those of a compaction.Store, and of a [Recorder].
func background() context.Context { return context.Background() } //nolint:forbidigo // their callers have none
