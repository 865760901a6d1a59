package mailbox

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// load reads what need names. It takes two reads, or three for a thread whose claim and latest runs do not belong together.
func (v *view) load(ctx context.Context, need Need) (State, error) {
	if need.Lenient {
		return v.lenient(ctx)
	}
	first := []store.Range{store.One(kindHead, "")}
	if need.Next || need.Queued {
		first = append(first, store.All(kindQueue))
	}
	if need.Dedupe != "" {
		first = append(first, store.One(kindDedupe, need.Dedupe))
	}
	if need.Image {
		first = append(first, store.One(kindImage, ""))
	}
	if err := v.want(ctx, slices.Concat(first, dispatchRanges(need.Dispatches, need.Requests), runRanges(need.Runs))...); err != nil {
		return State{}, err
	}
	out := State{Dispatches: map[string]Dispatch{}, Runs: map[string]Run{}}
	var err error
	if out.Head, err = v.head(); err != nil {
		return State{}, err
	}
	list, err := v.queue()
	if err != nil {
		return State{}, err
	}
	ids, runs := slices.Clone(need.Dispatches), slices.Clone(need.Runs)
	if need.Claimed && out.Head.Claim != nil {
		ids = append(ids, out.Head.Claim.Dispatch)
	}
	if c, ok := v.cells[cellID{kindDedupe, need.Dedupe}]; ok {
		out.Duplicate = string(c.Value)
		ids = append(ids, out.Duplicate)
	}
	if need.Next {
		ids = append(ids, out.next(list, need.Now)...)
	}
	for _, q := range list {
		if need.Queued {
			out.Queued = append(out.Queued, q.ID)
			ids = append(ids, q.ID)
		}
		if slices.Contains(ids, q.ID) && need.RunsOf {
			runs = append(runs, q.Run)
		}
	}
	if need.RunsOf {
		runs = append(runs, out.Head.Open.ID, out.Head.Latest.ID)
	}
	if err := v.parts(ctx, &out, need, ids, runs); err != nil {
		return State{}, err
	}
	out.Image = v.cells[cellID{kindImage, ""}].Value
	return out, nil
}

// parts reads dispatches and runs.
func (v *view) parts(ctx context.Context, out *State, need Need, ids, runs []string) error {
	if err := v.want(ctx, slices.Concat(dispatchRanges(ids, need.Requests), runRanges(runs))...); err != nil {
		return err
	}
	for _, id := range ids {
		c, ok := v.cells[cellID{kindDispatch, id}]
		if !ok {
			continue
		}
		var d Dispatch
		if err := decode(v.thread, c, &d); err != nil {
			return err
		}
		if need.Requests {
			d.Request = v.cells[cellID{kindRequest, id}].Value
		}
		out.Dispatches[id] = d
		if need.RunsOf {
			runs = append(runs, d.RunID)
		}
	}
	if err := v.want(ctx, runRanges(runs)...); err != nil {
		return err
	}
	for _, id := range runs {
		c, ok := v.cells[cellID{kindRun, id}]
		if !ok {
			continue
		}
		var r Run
		if err := decode(v.thread, c, &r); err != nil {
			return err
		}
		r.Data = v.cells[cellID{kindRunData, id}].Value
		out.Runs[id] = r
	}
	return nil
}

func dispatchRanges(ids []string, requests bool) (out []store.Range) {
	for _, id := range ids {
		if id == "" {
			continue
		}
		out = append(out, store.One(kindDispatch, id))
		if requests {
			out = append(out, store.One(kindRequest, id))
		}
	}
	return out
}

func runRanges(ids []string) (out []store.Range) {
	for _, id := range ids {
		if id != "" {
			out = append(out, store.One(kindRun, id), store.One(kindRunData, id))
		}
	}
	return out
}

// head decodes the head.
func (v *view) head() (Head, error) {
	h := Head{Thread: v.thread}
	c, ok := v.cells[cellID{kindHead, ""}]
	if !ok {
		h.Messages = v.length
		return h, nil
	}
	err := decode(v.thread, c, &h)
	h.Messages = max(h.Messages, v.length)
	return h, err
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
		if err := decode(v.thread, v.cells[cellID{kindQueue, key}], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// next sets Next, Holder and Later, and returns the ids of the first two.
func (s *State) next(list []queued, now time.Time) []string {
	for _, q := range list {
		if q.Holding && s.Holder == "" {
			s.Holder = q.ID
		}
		switch {
		case !q.Available.After(now):
			if s.Next == "" {
				s.Next = q.ID
			}
		case s.Later.IsZero() || q.Available.Before(s.Later):
			s.Later = q.Available
		}
	}
	return []string{s.Next, s.Holder}
}

// lenient reads the head alone. One that is damaged has a claim, for all that is known, and a fence that the thread cannot have reached:
// each claim makes a revision. Its lease is counted from when the damage was first noticed, which is written down.
func (v *view) lenient(ctx context.Context) (State, error) {
	if err := v.want(ctx, store.One(kindHead, ""), store.One(kindDamaged, "")); err != nil {
		return State{}, err
	}
	h, err := v.head()
	if err == nil {
		return State{Head: h}, nil
	}
	if v.revision > math.MaxInt64 {
		return State{}, err
	}
	out := State{Head: Head{Thread: v.thread, Fence: v.revision, Claim: &Claim{}}}
	if c, ok := v.cells[cellID{kindDamaged, ""}]; ok {
		if out.Head.UpdatedAt, err = time.Parse(time.RFC3339Nano, strings.TrimSpace(string(c.Value))); err == nil {
			return out, nil
		}
	}
	now, err := v.records.Time(ctx)
	if err != nil {
		return State{}, err
	}
	out.Head.UpdatedAt = milli(now)
	b := store.Batch{Thread: v.thread, Base: v.revision, Put: []store.Cell{{Kind: kindDamaged, Value: []byte(out.Head.UpdatedAt.Format(time.RFC3339Nano))}}}
	if _, err := store.ApplySurely(ctx, v.records.store, b); err != nil {
		return State{}, err
	}
	return State{}, errMoved
}
