package mailbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// Statuses are all that a dispatch can have.
func statuses() []Status { return []Status{Queued, Claimed, Acked, Cancelled, Superseded, DeadLetter} }

// overdue is how many threads that have become due since they were written are looked at in one poll, at least.
const overdue = 256

// Due implements [Store]. Threads that were due when they were written are in the order of their ranks; those that have become due since
// are sorted in among them, the first overdue ones by time.
func (r *Records) Due(ctx context.Context, q DueQuery) (due []Head, next time.Time, err error) {
	if q.Limit <= 0 {
		return nil, time.Time{}, context.Cause(ctx)
	}
	type list struct {
		heads []Head
		next  time.Time
		err   error
	}
	first := make(chan list, 1) // at once: each is a round trip
	go func() {
		var l list
		l.heads, l.next, l.err = r.later(ctx, q)
		first <- l
	}()
	ready, err := r.scanHeads(ctx, store.Scan{Index: indexReady}, q.Limit, func(h Head) bool {
		if h.DueAt.After(q.By) {
			next = earliest(next, h.DueAt)
			return false
		}
		return !slices.Contains(q.Skip, h.Tenant)
	})
	later := <-first
	if err != nil || later.err != nil {
		return nil, time.Time{}, cmp.Or(err, later.err)
	}
	next, due = earliest(next, later.next), slices.Concat(ready, later.heads)
	slices.SortStableFunc(due, func(a, b Head) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Thread, b.Thread))
	})
	return due[:min(len(due), q.Limit)], next, nil
}

// later returns the threads that have become due, and when the first of the others will be.
func (r *Records) later(ctx context.Context, q DueQuery) (due []Head, next time.Time, err error) {
	limit := max(2*q.Limit, overdue)
	stop := errors.New("stop")
	err = r.scan(ctx, store.Scan{Index: indexLater, Values: true}, limit+1, func(ref store.Ref) error {
		at, err := store.ParseNumber(ref.IndexKey)
		if err != nil {
			return err
		}
		if next = time.UnixMilli(at).UTC(); next.After(q.By) || len(due) == limit {
			return stop
		}
		next = time.Time{}
		if h := headOf(ref); !slices.Contains(q.Skip, h.Tenant) {
			due = append(due, h)
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return due, next, err
}

// headOf decodes a head of a listing. A damaged one comes as a head with nothing but its thread: a read of the thread returns the error.
func headOf(ref store.Ref) Head {
	h := Head{Thread: ref.Thread}
	if err := json.Unmarshal(ref.Value, &h); err != nil {
		return Head{Thread: ref.Thread}
	}
	return h
}

// scan goes through an index, in pages of a size, until visit returns an error.
func (r *Records) scan(ctx context.Context, q store.Scan, page int, visit func(store.Ref) error) error {
	q.Limit = min(max(page, 1), 1000)
	for {
		list, err := r.store.Scan(ctx, q)
		if err != nil {
			return fmt.Errorf("mailbox: index %s: %w", q.Index, err)
		}
		for _, ref := range list {
			if err := visit(ref); err != nil {
				return err
			}
		}
		if len(list) < q.Limit {
			return nil
		}
		q.After = list[len(list)-1]
		q.After.Value = nil
		q.Limit = min(2*q.Limit, 1000)
	}
}

// errFull ends a scan that has what it wants.
var errFull = errors.New("full")

// scanHeads lists heads that are wanted, limit at most.
func (r *Records) scanHeads(ctx context.Context, q store.Scan, limit int, want func(Head) bool) (out []Head, err error) {
	if limit <= 0 {
		return nil, context.Cause(ctx)
	}
	q.Values = true
	err = r.scan(ctx, q, limit, func(ref store.Ref) error {
		if h := headOf(ref); want(h) {
			out = append(out, h)
		}
		if len(out) == limit {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return out, err
}

// Threads implements [Reader].
func (r *Records) Threads(ctx context.Context, q ThreadQuery) ([]Head, error) {
	s := store.Scan{Index: indexThread}
	switch {
	case q.Parent != "":
		s.Index, s.Group = indexChild, q.Parent
	case q.Wait != "":
		s.Index, s.Group = indexWait, q.Wait
	case q.Tenant != "":
		s.Index, s.Group = indexTenant, q.Tenant
	}
	if q.After != "" {
		s.From = q.After + "\x00"
	}
	return r.scanHeads(ctx, s, q.Limit, func(h Head) bool {
		return (q.Tenant == "" || h.Tenant == q.Tenant) && (q.Wait == "" || h.Open.Wait == q.Wait) && (!q.Queued || h.Queued > 0)
	})
}

// Runs implements [Reader].
func (r *Records) Runs(ctx context.Context, q RunQuery) (out []Run, err error) {
	if q.Limit <= 0 {
		return nil, context.Cause(ctx)
	}
	s := store.Scan{Index: indexRuns, Values: true}
	switch { // the one that selects most comes first
	case q.Thread != "":
		s.Index, s.Group = indexRunsThread, q.Thread
	case q.Status != "" && q.Status != RunDone:
		s.Index, s.Group = indexRunsStatus, string(q.Status)
	case q.Tenant != "":
		s.Index, s.Group = indexRunsTenant, q.Tenant
	case q.Agent != "":
		s.Index, s.Group = indexRunsAgent, q.Agent
	case q.Status != "":
		s.Index, s.Group = indexRunsStatus, string(q.Status)
	}
	if q.After.ID != "" {
		s.From = madeKey(&q.After) + "\x00"
	}
	if !q.Since.IsZero() {
		s.To = store.Number(-q.Since.UnixMilli() + 1)
	}
	err = r.scan(ctx, s, q.Limit, func(ref store.Ref) error {
		var run Run
		if err := decode(ref.Thread, store.Cell{Kind: ref.Kind, Key: ref.Key, Value: ref.Value}, &run); err != nil {
			return err
		}
		selected, err := r.selects(ctx, q, &run)
		if selected {
			out = append(out, run)
		}
		if len(out) == q.Limit {
			return errFull
		}
		return err
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return out, err
}

// selects reports whether a query selects a run of a listing. The tenant is that of the thread.
func (r *Records) selects(ctx context.Context, q RunQuery, run *Run) (bool, error) {
	if q.Status != "" && run.Status != q.Status || q.Agent != "" && run.Agent != q.Agent || q.Thread != "" && run.Thread != q.Thread {
		return false, nil
	}
	if q.Tenant == "" {
		return true, nil
	}
	s, err := r.Load(ctx, run.Thread, Need{})
	return s.Head.Tenant == q.Tenant, err
}

// Find implements [Store].
func (r *Records) Find(ctx context.Context, kind Kind, id string) (thread string, found bool, err error) {
	q := store.Scan{Index: indexDispatch, From: id, To: id + "\x00", Limit: 1}
	if kind == KindRun {
		q.Index = indexRun
	}
	list, err := r.store.Scan(ctx, q)
	if err != nil || len(list) == 0 {
		return "", false, wrap(string(kind), id, err)
	}
	return list[0].Thread, true, nil
}

// Dispatches implements [Reader].
func (r *Records) Dispatches(ctx context.Context, q DispatchQuery) (out []Dispatch, err error) {
	if q.Limit <= 0 {
		return nil, context.Cause(ctx)
	}
	wanted := q.Statuses
	if len(wanted) == 0 {
		wanted = statuses()
	}
	if q.Thread != "" {
		s := store.Scan{Index: indexOrder, Group: q.Thread}
		if q.After.ID != "" {
			s.From = place(q.After.Priority, q.After.Seq) + "\x00"
		}
		return r.scanDispatches(ctx, s, q.Limit, wanted)
	}
	for _, status := range wanted {
		s := store.Scan{Index: indexStatus, Group: string(status)}
		if q.After.ID != "" {
			s.From = changedKey(&q.After) + "\x00"
		}
		list, err := r.scanDispatches(ctx, s, q.Limit, wanted)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b Dispatch) int { return cmp.Compare(changedKey(&a), changedKey(&b)) })
	return out[:min(len(out), q.Limit)], nil
}

func (r *Records) scanDispatches(ctx context.Context, s store.Scan, limit int, wanted []Status) (out []Dispatch, err error) {
	s.Values = true
	err = r.scan(ctx, s, limit, func(ref store.Ref) error {
		d, err := dispatchOf(ref)
		if err != nil {
			return err
		}
		if slices.Contains(wanted, d.Status) {
			out = append(out, d)
		}
		if len(out) == limit {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return out, err
}

func dispatchOf(ref store.Ref) (Dispatch, error) {
	var d Dispatch
	err := decode(ref.Thread, store.Cell{Kind: ref.Kind, Key: ref.Key, Value: ref.Value}, &d)
	return d, err
}

// Messages implements [Reader].
func (r *Records) Messages(ctx context.Context, thread string, from, limit int) ([]Message, error) {
	if limit <= 0 {
		return nil, context.Cause(ctx)
	}
	s, err := r.store.Read(ctx, thread, threads.MessagesQuery(uint64(max(from, 1)), limit)) //nolint:gosec // at least 1
	if err != nil {
		return nil, wrap("log of thread", thread, err)
	}
	first, all, err := threads.MessagesOf(s)
	if err != nil {
		return nil, wrap("log of thread", thread, err)
	}
	out := make([]Message, len(all))
	for i, m := range all {
		out[i] = Message{Seq: int(first) + i, ID: m.ID, Run: m.Run, Data: m.Data, At: m.At} //nolint:gosec // a count
	}
	return out, nil
}

// Count implements [Reader].
func (r *Records) Count(ctx context.Context) (Counts, error) {
	groups, err := r.store.Count(ctx, indexStatus)
	if err != nil {
		return Counts{}, fmt.Errorf("mailbox: count: %w", err)
	}
	out := Counts{Status: map[Status]int{}}
	for status, n := range groups {
		out.Status[Status(status)] = n
	}
	return out, nil
}

// Claims implements [Reader].
func (r *Records) Claims(ctx context.Context) (map[string]int, error) {
	groups, err := r.store.Count(ctx, indexClaim)
	if err != nil {
		return nil, fmt.Errorf("mailbox: claims: %w", err)
	}
	return groups, nil
}

// Purge implements [Store].
func (r *Records) Purge(ctx context.Context, q PurgeQuery) (n int, err error) {
	for _, status := range q.Statuses {
		if !status.Terminal() || q.Limit <= n {
			continue
		}
		s := store.Scan{Index: indexStatus, Group: string(status), To: store.Number(q.Before.UnixMilli()), Limit: min(q.Limit-n, 1000)}
		list, err := r.store.Scan(ctx, s)
		if err != nil {
			return n, fmt.Errorf("mailbox: purge: %w", err)
		}
		for _, thread := range slices.Compact(sortedThreads(list)) {
			did, err := r.purge(ctx, thread, list, q)
			n += did
			if err != nil {
				return n, wrap("purge of thread", thread, err)
			}
		}
	}
	return n, nil
}

func sortedThreads(list []store.Ref) (out []string) {
	for _, ref := range list {
		out = append(out, ref.Thread)
	}
	slices.Sort(out)
	return out
}

// purge deletes those dispatches of a thread that are still old and terminal.
func (r *Records) purge(ctx context.Context, thread string, list []store.Ref, q PurgeQuery) (n int, err error) {
	var ranges []store.Range
	for _, ref := range list {
		if ref.Thread == thread {
			ranges = append(ranges, store.One(kindDispatch, ref.Key))
		}
	}
	r.memory.forget(thread)
	var gone []string
	_, err = store.Update(ctx, r.store, thread, store.Query{Cells: ranges}, func(s store.Snapshot) (*store.Batch, error) {
		gone = nil
		b := &store.Batch{}
		for _, c := range s.Cells {
			var d Dispatch
			if err := decode(thread, c, &d); err != nil {
				return nil, err
			}
			if !slices.Contains(q.Statuses, d.Status) || !d.Status.Terminal() || !d.UpdatedAt.Before(q.Before) {
				continue
			}
			gone = append(gone, d.ID)
			b.Delete = append(b.Delete, store.One(kindDispatch, d.ID), store.One(kindRequest, d.ID))
		}
		if len(gone) == 0 {
			return nil, nil
		}
		return b, nil
	})
	if err == nil {
		err = r.dropEvents(ctx, gone...)
	}
	return len(gone), err
}

// dropEvents deletes the events of dispatches that are gone. What a crash leaves goes with its age.
func (r *Records) dropEvents(ctx context.Context, dispatches ...string) error {
	e, ok := r.store.(store.Events)
	if !ok || len(dispatches) == 0 {
		return nil
	}
	return e.DropEvents(ctx, dispatches...)
}

// idsOf returns the ids of all dispatches of a thread.
func (r *Records) idsOf(ctx context.Context, thread string) (ids []string, err error) {
	err = r.scan(ctx, store.Scan{Index: indexOrder, Group: thread}, 1000, func(ref store.Ref) error {
		ids = append(ids, ref.Key)
		return nil
	})
	return ids, err
}
