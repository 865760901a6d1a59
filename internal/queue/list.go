package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
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
	Tenant string
	Thread string
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

// Threads lists thread records by thread.
func (q *Queue) Threads(ctx context.Context, query ThreadQuery) ([]Thread, error) {
	s := store.Scan{Index: indexThread}
	switch {
	case query.Parent != "":
		s.Index, s.Group = indexChild, query.Parent
	case query.Wait != "":
		s.Index, s.Group = indexWait, query.Wait
	case query.Tenant != "":
		s.Index, s.Group = indexTenant, query.Tenant
	}
	if query.After != "" {
		s.From = query.After + "\x00"
	}
	return q.scanThreads(ctx, s, query.Limit, func(t Thread) bool {
		return (query.Tenant == "" || t.Tenant == query.Tenant) && (query.Wait == "" || t.Open.Wait == query.Wait) && (!query.Queued || t.Queued > 0)
	})
}

// Runs lists runs without their data, the newest first.
func (q *Queue) Runs(ctx context.Context, query RunQuery) (out []Run, err error) {
	if query.Limit <= 0 {
		return nil, context.Cause(ctx)
	}
	if query.Wait != "" && query.Status == "" {
		query.Status = RunWaiting
	}
	s := store.Scan{Index: indexRuns, Values: true}
	switch { // the one that selects most comes first
	case query.Thread != "":
		s.Index, s.Group = indexRunsThread, query.Thread
	case query.Status != "" && query.Status != RunDone:
		s.Index, s.Group = indexRunsStatus, string(query.Status)
	case query.Tenant != "":
		s.Index, s.Group = indexRunsTenant, query.Tenant
	case query.Agent != "":
		s.Index, s.Group = indexRunsAgent, query.Agent
	case query.Status != "":
		s.Index, s.Group = indexRunsStatus, string(query.Status)
	}
	if query.After.ID != "" {
		s.From = madeKey(&query.After) + "\x00"
	}
	if !query.Since.IsZero() {
		s.To = store.Number(-query.Since.UnixMilli() + 1)
	}
	err = q.scan(ctx, s, query.Limit, func(ref store.Ref) error {
		var run Run
		if err := decode(ref.Thread, cellID{ref.Kind, ref.Key}, ref.Value, &run); err != nil {
			return err
		}
		selected, err := q.selects(ctx, query, &run)
		if selected {
			out = append(out, run)
		}
		if err == nil && len(out) == query.Limit {
			return errFull
		}
		return err
	})
	return out, err
}

// selects reports whether a query selects a run of a listing. The tenant is that of the thread.
func (q *Queue) selects(ctx context.Context, query RunQuery, run *Run) (bool, error) {
	if query.Status != "" && run.Status != query.Status || query.Wait != "" && run.Wait != query.Wait || query.Agent != "" && run.Agent != query.Agent || query.Thread != "" && run.Thread != query.Thread {
		return false, nil
	}
	if query.Tenant == "" {
		return true, nil
	}
	t, err := q.Thread(ctx, run.Thread)
	return t.Tenant == query.Tenant, err
}

// Dispatches lists dispatches without their requests.
func (q *Queue) Dispatches(ctx context.Context, query DispatchQuery) (out []Dispatch, err error) {
	if query.Limit <= 0 {
		return nil, context.Cause(ctx)
	}
	wanted := query.Statuses
	if len(wanted) == 0 {
		wanted = Statuses()
	}
	if query.Thread != "" {
		s := store.Scan{Index: indexOrder, Group: query.Thread}
		if query.After.ID != "" {
			s.From = place(query.After.Priority, query.After.Seq) + "\x00"
		}
		return q.scanDispatches(ctx, s, query.Limit, wanted)
	}
	for _, status := range wanted {
		s := store.Scan{Index: indexStatus, Group: string(status)}
		if query.After.ID != "" {
			s.From = changedKey(&query.After) + "\x00"
		}
		list, err := q.scanDispatches(ctx, s, query.Limit, wanted)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b Dispatch) int { return cmp.Compare(changedKey(&a), changedKey(&b)) })
	return out[:min(len(out), query.Limit)], nil
}

func (q *Queue) scanDispatches(ctx context.Context, s store.Scan, limit int, wanted []Status) (out []Dispatch, err error) {
	s.Values = true
	err = q.scan(ctx, s, limit, func(ref store.Ref) error {
		var d Dispatch
		if err := decode(ref.Thread, cellID{ref.Kind, ref.Key}, ref.Value, &d); err != nil {
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
	return out, err
}

// Messages lists messages of a thread's log by Seq, from the one at from, limit at most.
func (q *Queue) Messages(ctx context.Context, thread string, from, limit int) ([]Message, error) {
	if limit <= 0 {
		return nil, context.Cause(ctx)
	}
	s, err := q.store.Read(ctx, thread, threads.MessagesQuery(uint64(max(from, 1)), limit)) //nolint:gosec // at least 1
	if err != nil {
		return nil, wrap("log of thread", thread, err)
	}
	first, all, err := threads.MessagesOf(s)
	if err != nil {
		return nil, wrap("log of thread", thread, err)
	}
	all = all[:min(limit, len(all))]
	out := make([]Message, len(all))
	for i, m := range all {
		out[i] = Message{Seq: int(first) + i, ID: m.ID, Run: m.Run, Data: m.Data, At: m.At} //nolint:gosec // a count
	}
	return out, nil
}
