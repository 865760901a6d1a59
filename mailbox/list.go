package mailbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// DispatchQuery selects dispatches.
type DispatchQuery struct {
	// Thread selects those of one thread, in the order of priority and Seq. Without it the order is UpdatedAt, then ID.
	Thread string
	// Statuses are those wanted, all when empty.
	Statuses []Status
	// After is the last one of the page before; its key fields are enough. Zero is the first page.
	After Dispatch
	Limit int
}

// RunQuery selects runs. Zero fields select nothing out.
type RunQuery struct {
	Status RunStatus
	Agent  string
	// Unnamed selects, besides those of Agent, runs whose requests named none.
	Unnamed bool
	Tenant  string
	Thread  string
	// Wait is what they wait for.
	Wait string
	// Since is when they were made at the earliest.
	Since time.Time
	// After is the last run of the page before; ID and CreatedAt are enough.
	After Run
	Limit int
}

// ThreadQuery selects threads. Zero fields select nothing out.
type ThreadQuery struct {
	Tenant string
	// Parent is the thread above.
	Parent string
	// Wait is what the open run of the thread waits for.
	Wait string
	// Queued selects those with queued dispatches.
	Queued bool
	// After is the last thread of the page before.
	After string
	Limit int
}

// dueQuery asks for threads.
type dueQuery struct {
	// By is when they are due at the latest.
	By time.Time
	// Skip are tenants that are left out.
	Skip  []string
	Limit int
}

// everything is no limit of what is listed.
const everything = math.MaxInt

// refs yields the places of an index. It begins with a page of scan.Limit.
func (q *queue) refs(ctx context.Context, s store.Scan) iter.Seq2[store.Ref, error] {
	return store.Refs(ctx, q.store, s)
}

// list lists what pick makes of the places of an index, limit at most. Pick returns false for one that is not wanted.
func list[T any](ctx context.Context, q *queue, s store.Scan, limit int, pick func(store.Ref) (T, bool, error)) (out []T, err error) {
	if limit <= 0 {
		return nil, context.Cause(ctx)
	}
	s.Limit = limit
	for ref, err := range q.refs(ctx, s) {
		if err != nil {
			return out, fmt.Errorf("mailbox: %w", err)
		}
		v, wanted, err := pick(ref)
		if err != nil {
			return out, err
		}
		if wanted {
			out = append(out, v)
		}
		if len(out) == limit {
			break
		}
	}
	return out, nil
}

// after begins a scan behind a key, unless it is that of no page before.
func after(s store.Scan, id, key string) store.Scan {
	if s.Values = true; id != "" {
		s.From = key + "\x00"
	}
	return s
}

// is reports whether a field has the value that a query selects, if it selects one.
func is[T comparable](field, selected T) bool {
	var zero T
	return selected == zero || field == selected
}

// Threads lists thread records by thread. A listing sees all changes that returned before it began, and one with a limit of 0 is empty. A
// damaged record has nothing but its id: a read of the thread returns the error.
func (q *queue) Threads(ctx context.Context, query ThreadQuery) ([]Thread, error) {
	s := store.Scan{Index: indexThread}
	switch {
	case query.Parent != "":
		s.Index, s.Group = indexChild, query.Parent
	case query.Wait != "":
		s.Index, s.Group = indexWait, query.Wait
	case query.Tenant != "":
		s.Index, s.Group = indexTenant, query.Tenant
	}
	return q.threads(ctx, after(s, query.After, query.After), query.Limit, func(t *Thread) bool {
		return is(t.Tenant, query.Tenant) && is(t.Open.Wait, query.Wait) && (!query.Queued || t.Queued > 0)
	})
}

// threads lists thread records that are wanted.
func (q *queue) threads(ctx context.Context, s store.Scan, limit int, want func(*Thread) bool) ([]Thread, error) {
	s.Values = true
	return list(ctx, q, s, limit, func(ref store.Ref) (Thread, bool, error) {
		t := threadOf(ref)
		wanted := want(&t)
		return t, wanted, nil
	})
}

func threadOf(ref store.Ref) Thread {
	t := Thread{ID: ref.Thread}
	if json.Unmarshal(ref.Value, &t) != nil {
		return Thread{ID: ref.Thread}
	}
	return t
}

// Runs lists runs without their data, the newest first.
func (q *queue) Runs(ctx context.Context, query RunQuery) ([]Run, error) {
	if query.Wait != "" && query.Status == "" {
		query.Status = RunWaiting
	}
	s := store.Scan{Index: indexRuns}
	switch { // the one that selects most comes first
	case query.Thread != "":
		s.Index, s.Group = indexRunsThread, query.Thread
	case query.Status != "" && query.Status != RunDone:
		s.Index, s.Group = indexRunsStatus, string(query.Status)
	case query.Tenant != "":
		s.Index, s.Group = indexRunsTenant, query.Tenant
	case query.Agent != "" && !query.Unnamed:
		s.Index, s.Group = indexRunsAgent, query.Agent
	case query.Status != "":
		s.Index, s.Group = indexRunsStatus, string(query.Status)
	}
	if !query.Since.IsZero() {
		s.To = store.Number(-query.Since.UnixMilli() + 1)
	}
	return list(ctx, q, after(s, query.After.ID, madeKey(&query.After)), query.Limit, func(ref store.Ref) (run Run, wanted bool, err error) {
		err = decode(ref.Thread, cellID{ref.Kind, ref.Key}, ref.Value, &run)
		wanted = is(run.Status, query.Status) && is(run.Wait, query.Wait) && is(run.Thread, query.Thread) &&
			(is(run.Agent, query.Agent) || query.Unnamed && run.Agent == "")
		if err == nil && wanted && query.Tenant != "" { // that of the thread
			var t Thread
			t, err = q.Thread(ctx, run.Thread)
			wanted = t.Tenant == query.Tenant
		}
		return run, wanted, err
	})
}

// Dispatches lists dispatches without their requests.
func (q *queue) Dispatches(ctx context.Context, query DispatchQuery) (out []Dispatch, err error) {
	wanted := query.Statuses
	if len(wanted) == 0 {
		wanted = Statuses()
	}
	pick := func(ref store.Ref) (d Dispatch, _ bool, err error) {
		err = decode(ref.Thread, cellID{ref.Kind, ref.Key}, ref.Value, &d)
		return d, slices.Contains(wanted, d.Status), err
	}
	last := &query.After
	if query.Thread != "" {
		s := store.Scan{Index: indexOrder, Group: query.Thread}
		return list(ctx, q, after(s, last.ID, place(last.Priority, last.Seq)), query.Limit, pick)
	}
	for _, status := range wanted {
		s := store.Scan{Index: indexStatus, Group: string(status)}
		some, err := list(ctx, q, after(s, last.ID, changedKey(last)), query.Limit, pick)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	slices.SortFunc(out, func(a, b Dispatch) int { return cmp.Compare(changedKey(&a), changedKey(&b)) })
	return out[:min(len(out), max(query.Limit, 0))], nil
}

// overdue is how many threads that have become due since they were written are read in one poll, at least.
const overdue = 256

// due returns threads that are due, by rank and then by thread, and when the first one will be due that is not yet; zero if none will
// be, or if there are more than the limit. It costs the same however many threads and dispatches there are. Threads that were due when
// they were written are in the order of their ranks; those that have become due since are sorted in among them, the first overdue ones by
// time.
func (q *queue) due(ctx context.Context, query dueQuery) (due []Thread, next time.Time, err error) {
	if query.Limit <= 0 {
		return nil, time.Time{}, context.Cause(ctx)
	}
	ctx, end := q.observe(ctx, Operation{Name: "due"})
	defer func() { end(len(due) == 0, err) }()
	type half struct {
		threads []Thread
		next    time.Time
		err     error
	}
	first := make(chan half, 1) // at once: each is a round trip
	go func() {
		var h half
		h.threads, h.next, h.err = q.dueLater(ctx, query)
		first <- h
	}()
	ready, err := q.threads(ctx, store.Scan{Index: indexReady}, query.Limit, func(t *Thread) bool {
		if t.DueAt.After(query.By) {
			next = earliest(next, t.DueAt)
			return false
		}
		return !slices.Contains(query.Skip, t.Tenant)
	})
	later := <-first
	if err != nil || later.err != nil {
		return nil, time.Time{}, cmp.Or(err, later.err)
	}
	next, due = earliest(next, later.next), slices.Concat(ready, later.threads)
	slices.SortStableFunc(due, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
	})
	return due[:min(len(due), query.Limit)], next, nil
}

// dueLater returns the threads that have become due, and when the first of the others will be.
func (q *queue) dueLater(ctx context.Context, query dueQuery) (due []Thread, next time.Time, err error) {
	limit := max(2*query.Limit, overdue)
	for ref, err := range q.refs(ctx, store.Scan{Index: indexLater, Values: true, Limit: limit + 1}) {
		if err != nil {
			return due, time.Time{}, fmt.Errorf("mailbox: %w", err)
		}
		at, err := store.ParseNumber(ref.IndexKey)
		if err != nil {
			return due, time.Time{}, err
		}
		if next := time.UnixMilli(at).UTC(); next.After(query.By) || len(due) == limit {
			return due, next, nil
		}
		if t := threadOf(ref); !slices.Contains(query.Skip, t.Tenant) {
			due = append(due, t)
		}
	}
	return due, time.Time{}, nil
}
