package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/mortise-dev/mortise/store"
)

// runPage is how many runs are listed at a time.
const runPage = 500

// List implements [Store].
func (r *Runs) List(n int) (all []Known, err error) {
	if err := r.keeper.Open(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	ctx, cancel := context.WithTimeout(background(), onCallTime)
	defer cancel()
	refs, err := r.store.Scan(ctx, store.Scan{Index: runIndex, Limit: max(n, 0), Values: true})
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	for _, ref := range refs {
		var c runCell
		var l Line
		if json.Unmarshal(ref.Value, &c) == nil && json.Unmarshal(c.First, &l) == nil && l.Start != nil {
			all = append(all, Known{ID: runOf(ref.Thread), Start: *l.Start})
		}
	}
	return all, nil
}

// Load implements [Store].
func (r *Runs) Load(id string) (*Run, error) {
	if err := r.keeper.Open(); err != nil {
		return nil, r.keeper.Wrap(id, err)
	}
	ctx, cancel := context.WithTimeout(background(), onCallTime)
	defer cancel()
	if CheckRun(id) == nil { // it may be a whole id: no list is needed then
		if run, err := r.load(ctx, id); !errors.Is(err, ErrUnknown) {
			return run, r.keeper.Wrap(id, err)
		}
	}
	var ids []string
	for refs, err := range r.pages(ctx) {
		if err != nil {
			return nil, r.keeper.Wrap(id, err)
		}
		for _, ref := range refs {
			ids = append(ids, runOf(ref.Thread))
		}
	}
	whole, err := Find(id, ids, "the store")
	if err != nil {
		return nil, err
	}
	run, err := r.load(ctx, whole)
	return run, r.keeper.Wrap(whole, err)
}

// load reads the record of a run whose whole id is known.
func (r *Runs) load(ctx context.Context, id string) (*Run, error) {
	s, err := r.store.Read(ctx, runPrefix+id, store.Query{Entries: []store.Span{{Log: runLog, From: 1, Limit: math.MaxInt32}}})
	if err != nil {
		return nil, err
	}
	if len(s.Entries) == 0 {
		return nil, ErrUnknown
	}
	out := &Run{}
	for _, e := range s.Entries {
		out.Take(e.Data)
	}
	if len(out.Starts) == 0 {
		return nil, fmt.Errorf("it is not a record of the format %s", Schema)
	}
	return out, nil
}

// pages yields all runs, newest first.
func (r *Runs) pages(ctx context.Context) iter.Seq2[[]store.Ref, error] {
	return func(yield func([]store.Ref, error) bool) {
		var after store.Ref
		for {
			refs, err := r.page(ctx, after)
			if !yield(refs, err) || err != nil || len(refs) < runPage {
				return
			}
			after = refs[len(refs)-1]
		}
	}
}

func (r *Runs) page(ctx context.Context, after store.Ref) ([]store.Ref, error) {
	ctx, cancel := context.WithTimeout(ctx, onCallTime)
	defer cancel()
	return r.store.Scan(ctx, store.Scan{Index: runIndex, After: after, Limit: runPage})
}

// prune removes all records but the newest.
func (r *Runs) prune(ctx context.Context, keep int) error {
	for refs, err := range r.pages(ctx) {
		if err != nil {
			return err
		}
		old := refs[min(keep, len(refs)):]
		keep -= len(refs) - len(old)
		for _, ref := range old {
			if err := r.remove(ctx, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes a record, unless it was written to since it was listed.
func (r *Runs) remove(ctx context.Context, ref store.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, onCallTime)
	defer cancel()
	cell := store.Query{Cells: []store.Range{store.One(runKind, "")}}
	drop := func(s store.Snapshot) (*store.Batch, error) {
		c, known, err := cellOf(s)
		if !known || err == nil && store.Number(-c.Written) != ref.IndexKey {
			return nil, nil // nothing to remove
		}
		return &store.Batch{Drop: true}, nil
	}
	_, err := store.Update(ctx, r.store, ref.Thread, cell, drop)
	if errors.Is(err, store.ErrOutcomeUnknown) { // a thread that was dropped does not remember the batch
		_, err = store.Update(ctx, r.store, ref.Thread, cell, drop)
	}
	return err
}
