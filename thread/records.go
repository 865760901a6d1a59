package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mortise-dev/mortise/store"
)

// Records reads the decision records of a store. Those that another process has just written may be missing from lists. Each call takes 5 s
// at most.
type Records struct{ store store.Store }

// RecordsOf returns the decision records of a store.
func RecordsOf(s store.Store) *Records { return &Records{store: s} }

// Known is a run with a decision record.
type Known struct {
	ID    string
	Start RunStart
}

// List returns the newest n runs, newest first: those that were written to last. What cannot be read is left out.
func (r *Records) List(ctx context.Context, n int) ([]Known, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	refs, err := r.store.Scan(ctx, store.Scan{Index: recordIndex, Limit: max(n, 0), Values: true})
	if err != nil {
		return nil, fmt.Errorf("decision records: %w", err)
	}
	var all []Known
	for _, ref := range refs {
		var c recordCell
		var l Line
		if json.Unmarshal(ref.Value, &c) == nil && json.Unmarshal(c.First, &l) == nil && l.Start != nil {
			all = append(all, Known{ID: ref.Key, Start: *l.Start})
		}
	}
	return all, nil
}

// Load reads the record of a run. The id may be cut short as long as no other run's begins in the same way. It fails with [ErrNoRecord] or
// [ErrAmbiguous], and names runs that there are.
func (r *Records) Load(ctx context.Context, id string) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, largeTime)
	defer cancel()
	ref, err := r.find(ctx, id)
	if err != nil {
		return nil, wrapRun(id, err)
	}
	return r.In(ctx, ref.Thread, ref.Key)
}

// In reads the record of a run of a thread, by its whole id.
func (r *Records) In(ctx context.Context, thread, run string) (*Record, error) {
	whole := store.Query{Entries: []store.Span{{Log: decisionLog + run, From: 1, Limit: math.MaxInt32}}}
	s, err := r.store.Read(ctx, keeperOf(thread, run), whole)
	if err != nil {
		return nil, wrapRun(run, err)
	}
	if len(s.Entries) == 0 {
		return nil, wrapRun(run, ErrNoRecord)
	}
	out := &Record{}
	for _, e := range s.Entries {
		out.add(e.Data)
	}
	if len(out.Starts) == 0 {
		return nil, wrapRun(run, fmt.Errorf("it is not a record of the format %s", RecordSchema))
	}
	return out, nil
}

// find finds the record of a run by its id, or by the beginning of it. Of several with one id it is the one that was written last.
func (r *Records) find(ctx context.Context, id string) (found store.Ref, err error) {
	var refs []store.Ref
	if CheckRun(id) == nil {
		scan := store.Scan{Index: runIndex, From: id, To: id + "\x7f", Limit: maxNamed + 2, Values: true}
		if refs, err = r.store.Scan(ctx, scan); err != nil {
			return found, err
		}
	}
	var runs []string
	newest := int64(-1)
	for _, ref := range refs {
		var c recordCell
		if ref.Key == id && json.Unmarshal(ref.Value, &c) == nil && c.Written > newest {
			found, newest = ref, c.Written
		}
		runs = append(runs, ref.Key)
	}
	switch {
	case newest >= 0:
		return found, nil
	case len(refs) == 1:
		return refs[0], nil
	case len(refs) > 1:
		return found, fmt.Errorf("%w: %s; write more of it", ErrAmbiguous, named(runs))
	}
	known, err := r.List(ctx, maxNamed+1)
	if err != nil {
		return found, err
	}
	if len(known) == 0 {
		return found, fmt.Errorf("%w, and there are none in the store", ErrNoRecord)
	}
	for _, k := range known {
		runs = append(runs, k.ID)
	}
	return found, fmt.Errorf("%w in the store; the newest are %s", ErrNoRecord, named(runs))
}

// prune removes all records but the newest.
func prune(ctx context.Context, s store.Store, keep int) error {
	for ref, err := range store.Refs(ctx, s, store.Scan{Index: recordIndex}) {
		keep--
		if err == nil && keep < 0 {
			err = remove(ctx, s, ref)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes a record, unless it was written to since it was listed.
func remove(ctx context.Context, s store.Store, ref store.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	log := decisionLog + ref.Key
	query := recordQuery(ref.Key)
	query.Entries = []store.Span{{Log: log}}
	drop := func(s store.Snapshot) (*store.Batch, error) {
		c, known, err := recordOf(s, ref.Key)
		switch {
		case !known || err == nil && store.Number(-c.Written) != ref.IndexKey:
			return nil, nil // nothing to remove
		case strings.HasPrefix(ref.Thread, noThread):
			return &store.Batch{Drop: true}, nil
		default:
			return &store.Batch{Delete: query.Cells, Trim: []store.Trim{{Log: log, Before: s.Last[log] + 1}}}, nil
		}
	}
	_, err := store.Update(ctx, s, ref.Thread, query, drop)
	if errors.Is(err, store.ErrOutcomeUnknown) { // a thread that was dropped does not remember the batch
		_, err = store.Update(ctx, s, ref.Thread, query, drop)
	}
	return err
}
