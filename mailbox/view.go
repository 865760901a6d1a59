package mailbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/store"
)

// need selects what of a thread a rule has to see. The thread record, the dispatch that is claimed and the open run always come, and so do the
// runs of the dispatches.
type need struct {
	// dispatches and runs are ids. Those of other threads count as not there.
	dispatches, runs []string
	// dedupe is a key, for turn.duplicate.
	dedupe string
	// next asks for turn.next and turn.holder, queued for all queued dispatches.
	next, queued bool
	// requests asks for the requests of the dispatches.
	requests bool
	// more is read for turn.seen.
	more store.Query
	// known is what the transition begins with, in place of what the queue has seen.
	known *seen
}

// errMoved is a thread that another process changed while it was read.
var errMoved = errors.New("the thread changed while it was read")

// view is a thread as one transition sees it: cells of one revision, read bit by bit.
type view struct {
	thread   string
	revision uint64
	// started is set when the revision is known, guessed when it is that of an earlier transition and nothing was read.
	started, guessed bool
	// whole is set when all cells that rules read are known.
	whole bool
	cells map[cellID][]byte
	// length is that of the log, if it was read: other views than the queue may have written to it, also before there was a thread record.
	length int
	// read has the ranges of which all cells are known.
	read map[store.Range]bool
}

// wrote makes the view that of the revision which a batch has made. It keeps what rules read.
func (v *view) wrote(b *store.Batch, revision uint64) {
	v.revision = revision
	for _, r := range b.Delete {
		maps.DeleteFunc(v.cells, func(id cellID, _ []byte) bool { return id.kind == r.Kind && r.Contains(id.key) })
	}
	for i := range b.Put {
		if c := &b.Put[i]; slices.Contains([]string{kindThread, kindDispatch, kindRequest, kindRun, kindQueue, kindDedupe}, c.Kind) {
			v.cells[cellID{c.Kind, c.Key}] = c.Value
			v.read[store.One(c.Kind, c.Key)] = true
		}
	}
}

// want reads ranges of cells.
func (v *view) want(ctx context.Context, s store.Store, ranges ...store.Range) error {
	if v.whole {
		return nil
	}
	var missing []store.Range
	for _, r := range ranges {
		if !v.read[r] && !slices.Contains(missing, r) {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 && v.started {
		return nil
	}
	query := store.Query{Cells: missing}
	record := slices.Contains(missing, store.One(kindThread, ""))
	if record {
		query.Entries = []store.Span{{Log: kindMessage}}
	}
	got, err := s.Read(ctx, v.thread, query)
	if err != nil {
		return err
	}
	if v.started && got.Revision != v.revision {
		return errMoved
	}
	v.revision, v.started, v.guessed = got.Revision, true, false
	if record {
		v.length = int(got.Last[kindMessage]) //nolint:gosec // a count
	}
	for _, r := range missing {
		v.read[r] = true
	}
	for _, c := range got.Cells {
		v.cells[cellID{c.Kind, c.Key}] = c.Value
	}
	return nil
}

// load reads what a rule needs: twice, or three times for a thread whose claim and open run do not belong together.
func (v *view) load(ctx context.Context, s store.Store, n need, t *turn) error {
	first := []store.Range{store.One(kindThread, "")}
	if (n.next || n.queued) && !v.wholeQueue() {
		first = append(first, store.All(kindQueue))
	}
	if n.dedupe != "" {
		first = append(first, store.One(kindDedupe, n.dedupe))
	}
	if err := v.want(ctx, s, slices.Concat(first, n.ranges(n.dispatches), rangesOf(kindRun, n.runs))...); err != nil {
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
	ids, runs := slices.Clone(n.dispatches), append(slices.Clone(n.runs), t.thread.Open.ID)
	if t.thread.Claim != nil {
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
		if slices.Contains(ids, e.ID) {
			runs = append(runs, e.Run)
		}
	}
	if err := v.parts(ctx, s, n, t, ids, runs); err != nil {
		return err
	}
	return v.more(ctx, s, n.more, t)
}

// parts reads dispatches and runs.
func (v *view) parts(ctx context.Context, s store.Store, n need, t *turn, ids, runs []string) error {
	if err := v.want(ctx, s, slices.Concat(n.ranges(ids), rangesOf(kindRun, runs))...); err != nil {
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
		runs = append(runs, d.RunID)
	}
	if err := v.want(ctx, s, rangesOf(kindRun, runs)...); err != nil {
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
	return nil
}

// more reads what another view of the thread needs, at the same revision.
func (v *view) more(ctx context.Context, s store.Store, q store.Query, t *turn) error {
	if len(q.Cells)+len(q.Entries) == 0 {
		return nil
	}
	got, err := s.Read(ctx, v.thread, q)
	if err != nil {
		return err
	}
	if got.Revision != v.revision {
		return errMoved
	}
	v.guessed, t.seen = false, got
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

// rangesOf selects cells by their keys, those that are not empty.
func rangesOf(kind string, ids []string) (out []store.Range) {
	for _, id := range ids {
		if id != "" {
			out = append(out, store.One(kind, id))
		}
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

// wholeQueue reports whether all that is queued is known: as many as the thread record counts.
func (v *view) wholeQueue() bool {
	var t Thread
	n := 0
	for id := range v.cells {
		if id.kind == kindQueue {
			n++
		}
	}
	return v.read[store.One(kindThread, "")] && v.decode(cellID{kindThread, ""}, &t) == nil && t.Queued == n
}

// queue decodes what is queued, in order.
func (v *view) queue() (out []queued, err error) {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(v.cells)), func(id cellID) bool { return id.kind != kindQueue })
	slices.SortFunc(keys, func(a, b cellID) int { return strings.Compare(a.key, b.key) })
	for _, id := range keys {
		var e queued
		if err := v.decode(id, &e); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
