package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/store"
)

// need selects what of a thread a rule has to see. The thread record always comes.
type need struct {
	// dispatches and runs are ids. Those of other threads count as not there.
	dispatches, runs []string
	// dedupe is a key, for turn.duplicate.
	dedupe string
	// claimed asks for the dispatch that has the claim, next for turn.next and turn.holder, queued for all queued dispatches.
	claimed, next, queued bool
	// requests asks for the requests of the dispatches, runsOf for their runs and the thread's open and latest one.
	requests, runsOf bool
	// more is read for turn.seen.
	more store.Query
}

// errMoved is a thread that another process changed while it was read.
var errMoved = errors.New("the thread changed while it was read")

// view is a thread as one transition sees it: cells of one revision, read bit by bit.
type view struct {
	q        *Queue
	thread   string
	revision uint64
	// started is set when the revision is known, guessed when it was remembered and nothing was read.
	started, guessed bool
	cells            map[cellID][]byte
	// length is that of the log, if it was read: other views than the queue may have written to it, also before there was a thread record.
	length int
	// read has the ranges of which all cells are known.
	read []store.Range
}

// view begins to read a thread. With remembered, what the process wrote last counts, unless it turns out to be old.
func (q *Queue) view(thread string, remembered bool) *view {
	v := &view{q: q, thread: thread, cells: map[cellID][]byte{}}
	if remembered {
		v.revision, v.started = q.memory.revision(thread)
		v.guessed = v.started
	}
	return v
}

// want reads ranges of cells.
func (v *view) want(ctx context.Context, ranges ...store.Range) error {
	var missing []store.Range
	for _, r := range ranges {
		if slices.Contains(v.read, r) || slices.Contains(missing, r) {
			continue
		}
		if v.guessed {
			if known, ok := v.q.memory.cells(v.thread, v.revision, r); ok {
				maps.Copy(v.cells, known)
				v.read = append(v.read, r)
				continue
			}
		}
		missing = append(missing, r)
	}
	if len(missing) == 0 && v.started {
		return nil
	}
	query := store.Query{Cells: missing}
	record := slices.Contains(missing, store.One(kindThread, ""))
	if record {
		query.Entries = []store.Span{{Log: kindMessage}}
	}
	s, err := v.q.store.Read(ctx, v.thread, query)
	if err != nil {
		return err
	}
	if v.started && s.Revision != v.revision {
		return errMoved
	}
	v.revision, v.started, v.guessed = s.Revision, true, false
	if record {
		v.length = int(s.Last[kindMessage]) //nolint:gosec // a count
	}
	v.q.memory.learn(v.thread, s.Revision, missing, s.Cells)
	v.read = append(v.read, missing...)
	for _, c := range s.Cells {
		v.cells[cellID{c.Kind, c.Key}] = c.Value
	}
	return nil
}

// load reads what a rule needs. It takes two reads, or three for a thread whose claim and latest runs do not belong together.
func (v *view) load(ctx context.Context, n need, t *turn) error {
	first := []store.Range{store.One(kindThread, "")}
	if n.next || n.queued {
		first = append(first, store.All(kindQueue))
	}
	if n.dedupe != "" {
		first = append(first, store.One(kindDedupe, n.dedupe))
	}
	if err := v.want(ctx, slices.Concat(first, n.ranges(n.dispatches), rangesOf(kindRun, n.runs))...); err != nil {
		return err
	}
	if err := v.decode(cellID{kindThread, ""}, &t.thread); err != nil {
		return err
	}
	t.thread.Messages = max(t.thread.Messages, v.length)
	list, err := v.queue()
	if err != nil {
		return err
	}
	ids, runs := slices.Clone(n.dispatches), slices.Clone(n.runs)
	if n.claimed && t.thread.Claim != nil {
		ids = append(ids, t.thread.Claim.Dispatch)
	}
	if id, ok := v.cells[cellID{kindDedupe, n.dedupe}]; ok {
		t.duplicate = string(id)
		ids = append(ids, t.duplicate)
	}
	if n.next {
		ids = append(ids, t.setNext(list)...)
	}
	for _, e := range list {
		if n.queued {
			t.queued = append(t.queued, e.ID)
			ids = append(ids, e.ID)
		}
		if slices.Contains(ids, e.ID) && n.runsOf {
			runs = append(runs, e.Run)
		}
	}
	if n.runsOf {
		runs = append(runs, t.thread.Open.ID, t.thread.Latest.ID)
	}
	return v.parts(ctx, n, t, ids, runs)
}

// parts reads dispatches and runs.
func (v *view) parts(ctx context.Context, n need, t *turn, ids, runs []string) error {
	if err := v.want(ctx, slices.Concat(n.ranges(ids), rangesOf(kindRun, runs))...); err != nil {
		return err
	}
	for _, id := range ids {
		var d Dispatch
		if err := v.decode(cellID{kindDispatch, id}, &d); err != nil {
			return err
		}
		if d.ID == "" {
			continue
		}
		if n.requests {
			d.Request = v.cells[cellID{kindRequest, id}]
		}
		t.dispatches[id], t.old[id] = d, d
		if n.runsOf {
			runs = append(runs, d.RunID)
		}
	}
	if err := v.want(ctx, rangesOf(kindRun, runs)...); err != nil {
		return err
	}
	for _, id := range runs {
		var r Run
		if err := v.decode(cellID{kindRun, id}, &r); err != nil {
			return err
		}
		if r.ID != "" {
			t.runs[id] = r
		}
	}
	return v.more(ctx, n.more, t)
}

// more reads what another view of the thread needs, at the same revision.
func (v *view) more(ctx context.Context, q store.Query, t *turn) error {
	if len(q.Cells)+len(q.Entries) == 0 {
		return nil
	}
	s, err := v.q.store.Read(ctx, v.thread, q)
	if err != nil {
		return err
	}
	if s.Revision != v.revision {
		return errMoved
	}
	v.guessed, t.seen = false, s
	return nil
}

// ranges selects dispatches, with their requests if need be.
func (n need) ranges(ids []string) []store.Range {
	out := rangesOf(kindDispatch, ids)
	if n.requests {
		out = append(out, rangesOf(kindRequest, ids)...)
	}
	return out
}

func rangesOf(kind string, ids []string) (out []store.Range) {
	for _, id := range named(ids...) {
		out = append(out, store.One(kind, id))
	}
	return out
}

// decode decodes a cell, if it is there.
func (v *view) decode(id cellID, into any) error {
	value, ok := v.cells[id]
	if !ok {
		return nil
	}
	return decode(v.thread, id, value, into)
}

// queue decodes what is queued, in order.
func (v *view) queue() ([]queued, error) {
	var keys []string
	for id := range v.cells {
		if id.kind == kindQueue {
			keys = append(keys, id.key)
		}
	}
	slices.Sort(keys)
	out := make([]queued, len(keys))
	for i, key := range keys {
		if err := v.decode(cellID{kindQueue, key}, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read reads parts of a thread, outside of a transition, all as of one moment.
func (q *Queue) read(ctx context.Context, thread string, n need) (*turn, error) {
	for range attempts {
		t := q.turn(thread)
		err := q.view(thread, false).load(ctx, n, t)
		if !errors.Is(err, errMoved) {
			return t, wrap("thread", thread, err)
		}
	}
	return nil, wrap("thread", thread, fmt.Errorf("%w: %w %d times", ErrConflict, errMoved, attempts))
}

// named leaves out the ids that are empty.
func named(ids ...string) (list []string) {
	for _, id := range ids {
		if id != "" {
			list = append(list, id)
		}
	}
	return list
}
