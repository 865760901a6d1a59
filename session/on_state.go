package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
)

// stateCell is a compaction state as a cell has it.
type stateCell struct {
	Revision uint64           `json:"revision"`
	State    compaction.State `json:"state"`
}

// Load implements compaction.Store.
func (t *Threads) Load(thread string) (state compaction.State, rev uint64, err error) {
	err = t.call(thread, func(ctx context.Context) error {
		s, err := t.store.Read(ctx, thread, stateQuery())
		if err != nil {
			return err
		}
		cell, err := stateOf(s)
		state, rev = cell.State, cell.Revision
		return err
	})
	return state, rev, err
}

// Swap implements compaction.Store.
func (t *Threads) Swap(thread string, rev uint64, state compaction.State) (next uint64, err error) {
	err = t.call(thread, func(ctx context.Context) error {
		_, err := store.Update(ctx, t.store, thread, stateQuery(), func(s store.Snapshot) (*store.Batch, error) {
			cell, err := stateOf(s)
			if err != nil {
				return nil, err
			}
			if cell.Revision != rev {
				return nil, compaction.ErrConflict
			}
			next = s.Revision + 1 // greater than that of any state before: a thread's revisions grow
			data, err := json.Marshal(stateCell{Revision: next, State: state})
			if err != nil {
				return nil, err
			}
			return &store.Batch{Put: []store.Cell{{Kind: stateKind, Value: data}}}, nil
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	return next, nil
}

// Record implements compaction.Store. It forgets events before the newest [MaxEvents].
func (t *Threads) Record(e compaction.Event) error {
	return t.call(e.Thread, func(ctx context.Context) error {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		s, err := t.store.Read(ctx, e.Thread, store.Query{Entries: []store.Span{{Log: eventLog}}})
		if err != nil {
			return err
		}
		b := store.Batch{Thread: e.Thread, Base: store.AnyRevision, Append: []store.Entry{{Log: eventLog, Data: data}}}
		// Events that come meanwhile make last too small, so that too few events are forgotten and never too many.
		if last := s.Last[eventLog]; last >= MaxEvents {
			b.Trim = []store.Trim{{Log: eventLog, Before: last + 2 - MaxEvents}}
		}
		_, err = store.ApplySurely(ctx, t.store, b)
		return err
	})
}

// Events implements [Store].
func (t *Threads) Events(thread string) (all []compaction.Event, err error) {
	err = t.call(thread, func(ctx context.Context) error {
		s, err := t.store.Read(ctx, thread, wholeLog(eventLog))
		if err != nil {
			return err
		}
		newest := s.Entries[max(0, len(s.Entries)-MaxEvents):]
		all = make([]compaction.Event, len(newest))
		for i := range newest {
			if err := json.Unmarshal(newest[i].Data, &all[i]); err != nil {
				all = nil
				return fmt.Errorf("event %d: %w", newest[i].Seq, err)
			}
		}
		return nil
	})
	return all, err
}

func stateQuery() store.Query { return store.Query{Cells: []store.Range{store.One(stateKind, "")}} }

// stateOf decodes the state of a snapshot. It is zero if there is none.
func stateOf(s store.Snapshot) (out stateCell, err error) {
	data, ok := s.Cell(stateKind, "")
	if !ok {
		return out, nil
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return stateCell{}, fmt.Errorf("state: %w", err)
	}
	return out, nil
}
